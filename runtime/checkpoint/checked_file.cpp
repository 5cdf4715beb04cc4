#include "runtime/checkpoint/checked_file.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/base/fd_io.h"
#include "runtime/checkpoint/open_beneath.h"

namespace dstrain::checkpoint {
namespace {

constexpr auto chunk_size = static_cast<std::size_t>(chunk_bytes);
constexpr std::size_t piece_size = 4 * chunk_size;  ///< is still in the cache when it is hashed

[[noreturn]] void fail_size(const std::string& name, Bytes found, Bytes expected) {
  fail(ErrorCode::input, "{}: {}: has {} bytes, {} expected", name,
       found < expected ? "truncated" : "too long", found, expected);
}

}  // namespace

CheckedFile::CheckedFile(int directory, const FileRecord& record, std::string name)
    : record_(record), name_(std::move(name)), fd_(open_beneath(directory, record.path, name_)) {
  const Bytes bytes = regular_bytes(fd_.get(), name_);
  if (bytes != record.bytes) fail_size(name_, bytes, record.bytes);
}

void CheckedFile::read(std::size_t first, std::span<std::byte> bytes) const {
  std::size_t chunk = first;
  while (!bytes.empty()) {
    std::span<std::byte> piece = bytes.first(std::min(bytes.size(), piece_size));
    bytes = bytes.subspan(piece.size());
    const std::size_t offset = chunk * chunk_size;
    const std::size_t got = read_fully_at(fd_.get(), offset, piece, name_);
    if (got < piece.size()) fail_size(name_, static_cast<Bytes>(offset + got), record_.bytes);
    for (; !piece.empty(); ++chunk) {
      const auto one = piece.first(std::min(piece.size(), chunk_size));
      const Checksum found = checksum_of(one);
      if (found != record_.chunks.at(chunk)) {
        fail(ErrorCode::input,
             "{}: damaged at byte {} (chunk of {} bytes): checksum {} expected, {} found", name_,
             chunk * chunk_size, one.size(), to_text(record_.chunks[chunk]), to_text(found));
      }
      piece = piece.subspan(one.size());
    }
  }
}

void CheckedFile::verify() const {
  const auto file_size = static_cast<std::size_t>(record_.bytes);
  std::vector<std::byte> buffer(std::min(file_size, piece_size));
  for (std::size_t done = 0; done < file_size; done += piece_size) {
    read(done / chunk_size, std::span(buffer).first(std::min(piece_size, file_size - done)));
  }
}

}  // namespace dstrain::checkpoint
