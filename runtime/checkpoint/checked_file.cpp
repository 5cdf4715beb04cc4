#include "runtime/checkpoint/checked_file.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>

#include "runtime/base/error.h"
#include "runtime/checkpoint/share_out.h"
#include "runtime/os/fd_io.h"
#include "runtime/os/file.h"

namespace dstrain::checkpoint {
namespace {

constexpr std::size_t piece_size = 2 * chunk_size;  ///< stays in the cache until it is hashed
constexpr std::size_t alignment = 4096;             ///< of direct reads
constexpr int threads_max = 4;
constexpr std::size_t large_size = 8 * piece_size;  ///< smaller reads are not worth a thread

[[noreturn]] void fail_size(const std::string& name, Bytes found, Bytes expected) {
  fail(ErrorCode::input, "{}: {}: has {} bytes, {} expected", name,
       found < expected ? "truncated" : "too long", found, expected);
}

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};

/// A buffer in one huge page: a direct read into many small pages is split, and slow on a virtual
/// disk.
std::unique_ptr<std::byte, Free> piece_buffer() {
  std::unique_ptr<std::byte, Free> buffer(
      static_cast<std::byte*>(std::aligned_alloc(piece_size, piece_size)));
  if (buffer == nullptr) throw std::bad_alloc();
  ::madvise(buffer.get(), piece_size, MADV_HUGEPAGE);  // a hint that may be refused
  return buffer;
}

}  // namespace

CheckedFile::CheckedFile(int directory, const FileRecord& record, std::string name)
    : record_(record), name_(std::move(name)), fd_(open_beneath(directory, record.path, name_)) {
  const Bytes bytes = regular_bytes(fd_.get(), name_);
  if (bytes != record.bytes) fail_size(name_, bytes, record.bytes);
  const std::string same_file = fmt::format("/proc/self/fd/{}", fd_.get());
  direct_fd_ = UniqueFd(::open(same_file.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
}

void CheckedFile::read(std::size_t first, std::span<std::byte> bytes) const {
  const std::size_t begin = first * chunk_size;
  scan({begin, begin + bytes.size(), bytes.data(), bytes.size() >= large_size});
}

void CheckedFile::verify() const {
  const auto size = static_cast<std::size_t>(record_.bytes);
  scan({0, size, nullptr, size >= large_size});
}

void CheckedFile::scan(const Range& range) const {
  const std::size_t pieces = (range.end - range.begin + piece_size - 1) / piece_size;
  share_out(pieces, range.large ? threads_max : 1, [&](auto&& next) {
    const auto buffer = piece_buffer();
    while (const auto piece = next()) {
      scan_piece(range, range.begin + *piece * piece_size, {buffer.get(), piece_size});
    }
  });
}

void CheckedFile::scan_piece(const Range& range,
                             std::size_t offset,
                             std::span<std::byte> buffer) const {
  const std::size_t size = std::min(piece_size, range.end - offset);
  std::byte* const target = range.target == nullptr ? nullptr : range.target + offset - range.begin;
  const std::span<std::byte> bytes = buffer.first(size);
  if (range.large && !is_cached(offset) && read_direct(offset, size, buffer.data())) {
    check(offset, bytes);
    if (target != nullptr) std::memcpy(target, bytes.data(), size);
    return;
  }
  const std::span<std::byte> place = target == nullptr ? bytes : std::span(target, size);
  read_cached(offset, place);
  check(offset, place);
}

/// Whether the page cache holds the byte, and so most likely the bytes after it.
bool CheckedFile::is_cached(std::size_t offset) const {
  void* const page =
      ::mmap(nullptr, alignment, PROT_READ, MAP_SHARED, fd_.get(), static_cast<off_t>(offset));
  if (page == MAP_FAILED) return false;
  unsigned char resident = 0;
  ::mincore(page, alignment, &resident);
  ::munmap(page, alignment);
  return (resident & 1U) != 0;
}

/// Returns false on any failure: reading through the cache then reports it.
bool CheckedFile::read_direct(std::size_t offset, std::size_t size, std::byte* aligned) const {
  if (!direct_fd_) return false;
  const auto asked = static_cast<std::size_t>(round_up(static_cast<std::int64_t>(size), alignment));
  const ssize_t got = ::pread(direct_fd_.get(), aligned, asked, static_cast<off_t>(offset));
  return got >= 0 && static_cast<std::size_t>(got) >= size;
}

void CheckedFile::read_cached(std::size_t offset, std::span<std::byte> bytes) const {
  const std::size_t got = read_fully_at(fd_.get(), offset, bytes, name_);
  if (got < bytes.size()) fail_size(name_, static_cast<Bytes>(offset + got), record_.bytes);
}

void CheckedFile::check(std::size_t offset, std::span<const std::byte> bytes) const {
  for (std::size_t at = 0; at < bytes.size(); at += chunk_size) {
    const auto chunk = bytes.subspan(at, std::min(chunk_size, bytes.size() - at));
    const Checksum expected = record_.chunks.at((offset + at) / chunk_size);
    const Checksum found = checksum_of(chunk);
    if (found == expected) continue;
    fail(ErrorCode::input,
         "{}: damaged at byte {} (chunk of {} bytes): checksum {} expected, {} found", name_,
         offset + at, chunk.size(), to_text(expected), to_text(found));
  }
}

}  // namespace dstrain::checkpoint
