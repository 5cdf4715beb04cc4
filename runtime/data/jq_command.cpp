#include "runtime/data/jq_command.h"

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

std::string without_extensions(const std::string& file) {
  constexpr std::array<std::string_view, 9> formats{
      ".jsonl", ".jsonlines", ".jl", ".ndjson", ".json", ".parquet", ".arrow", ".csv", ".tsv"};
  return stem_of(without_compression(file), formats).string();
}

std::string converted_name(const std::string& file) {
  return without_extensions(file) + "-converted.jsonl";
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

std::string jq_lines(std::string_view test) {
  return fmt::format("jq -nrR 'inputs | select(explode | any(. > 32)) | select({})'", test);
}

constexpr std::string_view jq_begin = "jq -cn 'inputs";

bool gives_jq_command(std::string_view message) {
  return message.find(jq_begin) != std::string_view::npos;
}

std::string jq_command(std::string_view program, const std::string& file) {
  // As one program over all inputs, jq stops at the first error and exits with its status. One run
  // per record would go on, and exit with the status of the last.
  const std::string jq =
      fmt::format("{}{}{}'", jq_begin, program == "." ? "" : " | ", program == "." ? "" : program);
  return whole_or_none(reading(jq, file), converted_name(file));
}

}  // namespace dstrain::data
