#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace dstrain {

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
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept;
  /// The same bytes, for who reads text.
  [[nodiscard]] std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(bytes().data()), bytes().size()};
  }

  struct Mapping;

 private:
  std::unique_ptr<Mapping> mapping_;
};

/// Whether what this process has mapped is still what it was. Throws Error{input} for a file that
/// has become shorter, and warns once of one that was written to, by its size and the time of its
/// last change. Another file that took the place of one is no change: what is mapped stays. Threads
/// may call at once.
void check_mapped_files();

/// From now on a process that reads what was cut off a mapped file says which one that is, and ends
/// with status::failed, where SIGBUS would end it without a word. Call once from main.
void name_shortened_files();

}  // namespace dstrain
