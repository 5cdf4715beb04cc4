#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/unique_handle.h"
#include "runtime/base/units.h"

namespace dstrain {

/// The whole of a small text file. Throws Error{input} when it is missing, no regular file, or
/// larger than `bytes_max`.
std::string read_text_file(const std::filesystem::path& path, Bytes bytes_max);

/// Writes `text` to a new file beside `path`, flushes it to disk and renames it over `path`: a
/// reader sees the old file or the new one, whole. Throws Error{io} and then leaves nothing behind.
void write_text_file(const std::filesystem::path& path, std::string_view text);

/// A read-only view of a whole file, mapped. Move-only.
class MappedFile {
 public:
  /// Throws Error{input} when the file is missing, empty or no regular file.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  /// The same bytes, for who reads text.
  [[nodiscard]] std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

 private:
  std::span<const std::byte> bytes_;
};

/// The paths that a pattern of the shell's matches, "data/*.bin", sorted. Throws Error{input} when
/// there is none.
std::vector<std::string> paths_matching(const std::string& pattern);

/// Opens a directory for open_beneath. Throws Error{input}.
UniqueFd open_directory(const std::filesystem::path& path);

/// Opens `path`, relative to a directory, for reading, and waits for no writer. No part of it may
/// be a symbolic link, so that a path without ".." stays beneath the directory. `name` is for
/// messages. Throws Error{input}.
UniqueFd open_beneath(int directory, const std::string& path, const std::string& name);

}  // namespace dstrain
