#pragma once
#include <string>
#include <string_view>

namespace dstrain::config {

/// Explains why a path is not a model directory. It may be a file, or missing, and then possibly
/// the name of a model on the Hugging Face hub ("gpt2", "google-t5/t5-small"), from which nothing
/// is downloaded.
std::string missing_directory(const std::string& path,
                              std::string_view option = "--model_name_or_path");

/// Explains why the value of `option`, "byte" or a tokenizer's directory, is not a directory at
/// all; else empty.
std::string missing_tokenizer(std::string_view option, const std::string& value);

}  // namespace dstrain::config
