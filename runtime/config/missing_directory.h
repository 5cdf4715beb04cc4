#pragma once
#include <string>

namespace dstrain::config {

/// Why a path is not the directory of a model: there is none, and it may be the name of a model on
/// the Hugging Face hub ("gpt2", "google-t5/t5-small"), from where nothing is fetched.
std::string missing_directory(const std::string& path);

}  // namespace dstrain::config
