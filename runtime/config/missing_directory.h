#pragma once
#include <string>
#include <string_view>

namespace dstrain::config {

/// Why a path is not the directory of a model: it is a file, or there is none, and it may be the
/// name of a model on the Hugging Face hub ("gpt2", "google-t5/t5-small"), from where nothing is
/// fetched.
std::string missing_directory(const std::string& path,
                              std::string_view option = "--model_name_or_path");

/// What is wrong with the value of `option`, which is "byte" or the directory of a tokenizer, as
/// far as it is no directory at all; else empty.
std::string missing_tokenizer(std::string_view option, const std::string& value);

}  // namespace dstrain::config
