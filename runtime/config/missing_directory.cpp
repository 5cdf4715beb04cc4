#include "runtime/config/missing_directory.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

namespace dstrain::config {
namespace {

/// Whether the path looks like "name" or "owner/name" on the hub and nothing exists there.
bool may_be_on_the_hub(const std::string& path) {
  const auto is_part = [](std::string_view part) {
    const auto allowed = [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
             c == '-' || c == '_' || c == '.';
    };
    return !part.empty() && part.front() != '.' && part.front() != '-' &&
           std::ranges::all_of(part, allowed);
  };
  const std::string_view text = path;
  const std::size_t slash = text.find('/');
  std::error_code ignored;
  if (std::filesystem::exists(text.substr(0, slash), ignored)) return false;
  return is_part(text.substr(0, slash)) &&
         (slash == std::string_view::npos || is_part(text.substr(slash + 1)));
}

/// Explains that the directory is missing, and how to get it if the hub may have it.
std::string missing(const std::string& path, std::string_view what, std::string_view option) {
  std::string message = path + ": no such directory";
  if (!may_be_on_the_hub(path)) return message;
  const std::size_t slash = path.find('/');
  const std::string name = path.substr(slash + 1);
  const std::string_view owner = slash == std::string::npos ? "OWNER/" : "";
  return message + fmt::format(
                       "; a {} of the Hugging Face hub is not downloaded: fetch it yourself, hf "
                       "download {}{} --local-dir {}, and give {} ./{}",
                       what, owner, path, name, option, name);
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

/// "m/model.safetensors" -> "m".
std::string directory_of(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

}  // namespace

std::string missing_directory(const std::string& path, std::string_view option) {
  if (is_file(path)) {
    if (path.ends_with(".gguf")) {
      return path +
             ": is a GGUF file, which is not read; give the directory of the model in Hugging "
             "Face's format, with config.json and model.safetensors";
    }
    std::error_code ignored;
    const std::string directory = directory_of(path);
    const bool model = std::filesystem::exists(directory + "/config.json", ignored);
    return fmt::format("{}: is a file; give the directory with config.json and the weights{}", path,
                       model ? ": " + directory : "");
  }
  const std::string message = missing(path, "model", option);
  return may_be_on_the_hub(path) && option.starts_with("--")
             ? message + "; for random weights give --config_name instead"
             : message;
}

std::string missing_tokenizer(std::string_view option, const std::string& value) {
  std::error_code ignored;
  if (value == "byte" || std::filesystem::is_directory(value, ignored)) return {};
  if (is_file(value)) {
    return fmt::format("{} {}: is a file; give the directory with the tokenizer's files: {}",
                       option, value, directory_of(value));
  }
  return fmt::format("{} {}", option, missing(value, "tokenizer", option));
}

}  // namespace dstrain::config
