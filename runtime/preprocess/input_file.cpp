#include "runtime/preprocess/input_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include <sys/stat.h>

#include <fmt/ranges.h>

#include "runtime/base/error.h"
#include "runtime/data/conversion_command.h"
#include "runtime/data/foreign_format.h"
#include "runtime/data/hugging_face_encoder.h"
#include "runtime/os/file.h"

namespace dstrain::preprocess {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::pair<std::string_view, Layout>, 9> layouts{
    {{".txt", Layout::text},
     {".text", Layout::text},
     {".jsonl", Layout::json_lines},
     {".jsonlines", Layout::json_lines},
     {".jl", Layout::json_lines},
     {".ndjson", Layout::json_lines},
     {".json", Layout::json_lines},
     {".csv", Layout::csv},
     {".tsv", Layout::tsv}}};

constexpr std::array<std::pair<std::string_view, Compression>, 2> compressions{
    {{".gz", Compression::gzip}, {".zst", Compression::zstd}}};

/// Returns whether the name is that of a text, and the properties of the file that the name tells.
std::pair<bool, InputFile> read_name(const std::string& path) {
  InputFile file{.path = path};
  fs::path name = path;
  data::refuse_unread_format(path, {});
  for (const auto& [extension, compression] : compressions) {
    if (data::lower_extension(name) != extension) continue;
    file.compression = compression;
    name.replace_extension();
    break;
  }
  data::refuse_unread_format(name.string(), {});
  const auto* const known = std::ranges::find(layouts, data::lower_extension(name),
                                              &std::pair<std::string_view, Layout>::first);
  if (known != layouts.end()) file.layout = known->second;
  return {known != layouts.end(), std::move(file)};
}

InputFile stat_file(InputFile file) {
  struct stat found {};
  if (::stat(file.path.c_str(), &found) != 0) {
    fail(ErrorCode::input, "{}: {}", file.path, std::strerror(errno));
  }
  if (!S_ISREG(found.st_mode)) {
    fail(ErrorCode::input, "{}: is neither a file nor a directory", file.path);
  }
  file.bytes = found.st_size;
  file.modified_ns = found.st_mtim.tv_sec * std::int64_t{1'000'000'000} + found.st_mtim.tv_nsec;
  return file;
}

/// The files in a directory and its subdirectories.
class Walk {
 public:
  /// Throws Error{input}.
  explicit Walk(const std::string& directory) {
    std::error_code error;
    fs::recursive_directory_iterator entry(directory, error);
    for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
      path_ = entry->path();
      if (!visit(*entry)) entry.disable_recursion_pending();
    }
    if (error) {
      fail(ErrorCode::input, "{}: cannot be read, after {}: {}", directory, path_.string(),
           error.message());
    }
    std::ranges::sort(paths_);
  }

  [[nodiscard]] const std::vector<std::string>& paths() const { return paths_; }
  /// Returns "3 files and directories are left out: a/b.pdf, ..."; empty: none are.
  [[nodiscard]] std::string note() const {
    constexpr std::ptrdiff_t named = 3;
    if (left_out_.empty()) return {};
    const auto count = std::ssize(left_out_);
    return fmt::format(
        "left out are {}{}",
        fmt::join(std::span(left_out_).first(static_cast<std::size_t>(std::min(count, named))),
                  ", "),
        count > named ? fmt::format(" and {} more", count - named) : "");
  }

 private:
  /// Whether to descend into a directory.
  bool visit(const fs::directory_entry& entry) {
    const fs::path& path = entry.path();
    std::error_code ignored;
    const bool is_hidden = path.filename().string().starts_with('.');
    if (entry.is_directory(ignored)) {
      const bool enter = !is_hidden && !entry.is_symlink(ignored) && !is_ours(path);
      if (!enter) left_out_.push_back(path.string());
      return enter;
    }
    const bool takes = !is_hidden && entry.is_regular_file(ignored) && read_name(path).first;
    (takes ? paths_ : left_out_).push_back(path.string());
    return true;
  }
  static bool is_ours(const fs::path& directory) {
    std::error_code ignored;
    return data::has_tokenizer(directory) || fs::exists(directory / "manifest.json", ignored);
  }

  fs::path path_;
  std::vector<std::string> paths_;
  std::vector<std::string> left_out_;
};

void add_directory(const std::string& directory, Inputs& inputs) {
  const Walk walk(directory);
  for (const std::string& path : walk.paths()) {
    inputs.files.push_back(stat_file(read_name(path).second));
  }
  const std::string note = walk.note();
  if (!note.empty()) inputs.notes.push_back(fmt::format("{}: {}", directory, note));
  if (!walk.paths().empty()) return;
  fail(ErrorCode::input,
       "{}: none of its files has the extension of a text: .txt, .text, .jsonl, .jsonlines, .jl, "
       ".ndjson, "
       ".json, .csv, .tsv, and these with .gz or .zst; name others one by one{}",
       directory, note.empty() ? "" : "; " + note);
}

void add_path(const std::string& path, Inputs& inputs) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return add_directory(path, inputs);
  inputs.files.push_back(stat_file(read_name(path).second));
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

Inputs find_inputs(std::span<const std::string> arguments) {
  Inputs inputs;
  for (const std::string& argument : arguments) {
    std::error_code ignored;
    if (fs::exists(fs::symlink_status(argument, ignored))) {
      add_path(argument, inputs);
    } else {
      for (const std::string& path : paths_matching(argument)) add_path(path, inputs);
    }
  }
  refuse_repeats(inputs.files);
  return inputs;
}

void refuse_changed(const InputFile& file) {
  const InputFile now = stat_file(file);
  if (now.bytes == file.bytes && now.modified_ns == file.modified_ns) return;
  fail(ErrorCode::input, "{}: was changed while it was read; start anew: --overwrite_output_dir",
       file.path);
}

}  // namespace dstrain::preprocess
