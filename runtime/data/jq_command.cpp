#include "runtime/data/jq_command.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "runtime/base/shell_word.h"

namespace dstrain::data {
namespace {

/// Without an extension that is one of these.
template <std::size_t size>
std::filesystem::path stem_of(std::filesystem::path path,
                              const std::array<std::string_view, size>& extensions) {
  if (std::ranges::find(extensions, path.extension().string()) != extensions.end()) {
    path.replace_extension();
  }
  return path;
}

}  // namespace

std::string converted_name(const std::string& file) {
  constexpr std::array<std::string_view, 2> compressed{".gz", ".zst"};
  constexpr std::array<std::string_view, 5> formats{".jsonl", ".ndjson", ".json", ".parquet",
                                                    ".arrow"};
  return stem_of(stem_of(file, compressed), formats).string() + "-converted.jsonl";
}

std::string jq_command(std::string_view program, const std::string& file) {
  const std::string from = shell_path(file);
  const std::string to = shell_path(converted_name(file));
  for (const auto& [extension, unpack] : {std::pair{".gz", "zcat"}, std::pair{".zst", "zstdcat"}}) {
    if (file.ends_with(extension)) {
      return fmt::format("{} {} | jq -c '{}' > {}", unpack, from, program, to);
    }
  }
  return fmt::format("jq -c '{}' {} > {}", program, from, to);
}

}  // namespace dstrain::data
