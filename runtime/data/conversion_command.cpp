#include "runtime/data/conversion_command.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "runtime/base/shell_word.h"
#include "runtime/base/utf8.h"

namespace dstrain::data {
namespace {

/// Removes an extension that is one of these.
template <std::size_t size>
std::filesystem::path stem_of(std::filesystem::path path,
                              const std::array<std::string_view, size>& extensions) {
  if (std::ranges::find(extensions, lower_extension(path.string())) != extensions.end()) {
    path.replace_extension();
  }
  return path;
}

}  // namespace

std::string lower_extension(const std::string& file) {
  return lower_case(std::filesystem::path(file).extension().string());
}

std::string without_compression(const std::string& file) {
  constexpr std::array<std::string_view, 2> compressed{".gz", ".zst"};
  return stem_of(file, compressed).string();
}

std::string converted_name(const std::string& file) {
  constexpr std::array<std::string_view, 4> formats{".parquet", ".arrow", ".csv", ".tsv"};
  return stem_of(without_compression(file), formats).string() + "-converted.jsonl";
}

std::string free_name(const std::string& path) {
  const std::filesystem::path wanted(path);
  std::filesystem::path name = wanted;
  std::error_code ignored;
  for (int number = 2; std::filesystem::exists(name, ignored); ++number) {
    name.replace_filename(
        fmt::format("{}-{}{}", wanted.stem().string(), number, wanted.extension().string()));
  }
  return name.string();
}

std::string whole_or_none(std::string_view command, const std::string& target) {
  const std::string name = free_name(target);
  const std::string part = shell_path(name + ".tmp");
  return fmt::format("{} > {} && mv {} {}", command, part, part, shell_path(name));
}

std::string reading(std::string_view command, const std::string& file) {
  const std::string from = shell_path(file);
  for (const auto& [extension, unpack] : {std::pair{".gz", "zcat"}, std::pair{".zst", "zstdcat"}}) {
    if (file.ends_with(extension)) return fmt::format("{} {} | {}", unpack, from, command);
  }
  return fmt::format("{} {}", command, from);
}

}  // namespace dstrain::data
