#include "runtime/config/missing_directory.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

namespace dstrain::config {
namespace {

/// "name" or "owner/name" in the hub's characters, of which nothing is there.
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

}  // namespace

std::string missing_directory(const std::string& path) {
  std::string message = path + ": no such directory";
  if (!may_be_on_the_hub(path)) return message;
  const std::string name = path.substr(path.find('/') + 1);
  return message + fmt::format(
                       "; a model of the Hugging Face hub is not downloaded: fetch it yourself, hf "
                       "download {} --local-dir {}, and give --model_name_or_path ./{}; for random "
                       "weights give --config_name instead",
                       path, name, name);
}

}  // namespace dstrain::config
