#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace dstrain {

/// A read-only mapping of a whole file. Move-only.
class MappedFile {
 public:
  /// Throws Error{input} if the file is missing, empty or not a regular file.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept;
  /// The same bytes as text.
  [[nodiscard]] std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(bytes().data()), bytes().size()};
  }

  struct Mapping;

 private:
  std::unique_ptr<Mapping> mapping_;
};

/// Checks that the files mapped by this process have not changed. Throws Error{input} for a file
/// that has become shorter, and warns once for one that was written to, judging by its size and
/// modification time. A file that was replaced by another is fine, because the mapping stays.
/// Thread-safe.
void check_mapped_files();

/// Makes a process that reads beyond the new end of a mapped file name the file and exit with
/// status::failed, instead of dying of SIGBUS without a message. Call once from main.
void name_shortened_files();

}  // namespace dstrain
