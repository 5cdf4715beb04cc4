#include "runtime/preprocess/input_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <utility>

#include <sys/stat.h>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/data/foreign_format.h"

namespace dstrain::preprocess {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::pair<std::string_view, Layout>, 7> layouts{
    {{".txt", Layout::text},
     {".text", Layout::text},
     {".jsonl", Layout::json_lines},
     {".ndjson", Layout::json_lines},
     {".json", Layout::json_lines},
     {".csv", Layout::csv},
     {".tsv", Layout::tsv}}};

constexpr std::array<std::pair<std::string_view, Compression>, 2> compressions{
    {{".gz", Compression::gzip}, {".zst", Compression::zstd}}};

/// What the name says: whether it is one that texts have, and the file as far as it tells.
std::pair<bool, InputFile> read_name(const std::string& path) {
  InputFile file{.path = path};
  fs::path name = path;
  for (const auto& [extension, compression] : compressions) {
    if (name.extension() != extension) continue;
    file.compression = compression;
    name.replace_extension();
    break;
  }
  data::refuse_unread_format(name.string(), {});
  const auto* const known = std::ranges::find(layouts, name.extension().string(),
                                              &std::pair<std::string_view, Layout>::first);
  if (known != layouts.end()) file.layout = known->second;
  return {known != layouts.end(), std::move(file)};
}

InputFile stat_file(InputFile file) {
  struct stat found {};
  if (::stat(file.path.c_str(), &found) != 0) fail_errno(errno, "read " + file.path);
  if (!S_ISREG(found.st_mode)) {
    fail(ErrorCode::input, "{}: is neither a file nor a directory", file.path);
  }
  file.bytes = found.st_size;
  file.modified_ns = found.st_mtim.tv_sec * std::int64_t{1'000'000'000} + found.st_mtim.tv_nsec;
  return file;
}

bool is_hidden(const fs::path& path) {
  return path.filename().string().starts_with('.');
}

void add_directory(const std::string& directory, std::vector<InputFile>& files) {
  std::vector<std::string> paths;
  auto entry = fs::recursive_directory_iterator(directory);
  for (; entry != fs::recursive_directory_iterator(); ++entry) {
    if (entry->is_directory() && is_hidden(entry->path())) entry.disable_recursion_pending();
    if (entry->is_regular_file() && !is_hidden(entry->path())) paths.push_back(entry->path());
  }
  std::ranges::sort(paths);
  const std::size_t before = files.size();
  for (const std::string& path : paths) {
    auto [is_text, file] = read_name(path);
    if (is_text) files.push_back(stat_file(std::move(file)));
  }
  if (files.size() > before) return;
  fail(ErrorCode::input,
       "{}: none of its {} files is named as a text is: .txt, .text, .jsonl, .ndjson, .json, .csv, "
       ".tsv, and these with .gz or .zst; name others one by one",
       directory, paths.size());
}

void add_path(const std::string& path, std::vector<InputFile>& files) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return add_directory(path, files);
  files.push_back(stat_file(read_name(path).second));
}

void refuse_repeats(const std::vector<InputFile>& files) {
  std::set<std::string> seen;
  for (const InputFile& file : files) {
    if (!seen.insert(fs::weakly_canonical(file.path)).second) {
      fail(ErrorCode::input, "{}: is named twice", file.path);
    }
  }
}

}  // namespace

std::vector<InputFile> find_inputs(std::span<const std::string> arguments) {
  std::vector<InputFile> files;
  for (const std::string& argument : arguments) {
    std::error_code ignored;
    if (fs::exists(argument, ignored)) {
      add_path(argument, files);
    } else {
      for (const std::string& path : paths_matching(argument)) add_path(path, files);
    }
  }
  refuse_repeats(files);
  return files;
}

}  // namespace dstrain::preprocess
