#include "runtime/checkpoint/new_file.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/base/fd_io.h"

namespace dstrain::checkpoint {
namespace {

constexpr Bytes writeback_bytes = 8 * mebibyte;

}  // namespace

NewFile::NewFile(const std::filesystem::path& root, const std::string& path, Bytes bytes)
    : record_{path, bytes, {}},
      name_((root / path).string()),
      fd_(::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644)) {
  if (!fd_) fail_errno(errno, "create " + name_);
  try {
    reserve_space(fd_.get(), bytes, name_);
  } catch (...) {
    ::unlink(name_.c_str());
    throw;
  }
}

NewFile::~NewFile() {
  if (fd_) ::unlink(name_.c_str());
}

void NewFile::append(std::span<const std::byte> bytes) {
  DSTRAIN_CHECK(static_cast<Bytes>(bytes.size()) <= record_.bytes - written_, "{} gets too much",
                name_);
  while (!bytes.empty()) {  // in pieces that are still in the cache when they are copied
    const auto piece = bytes.first(std::min(bytes.size(), static_cast<std::size_t>(chunk_bytes)));
    hasher_.add(piece);
    write_fully(fd_.get(), piece, name_);
    written_ += static_cast<Bytes>(piece.size());
    bytes = bytes.subspan(piece.size());
    if (written_ - submitted_ >= writeback_bytes) start_writeback();
  }
}

/// The disk works while the next pieces are hashed. Only a hint: finish() flushes, and learns of
/// what failed.
void NewFile::start_writeback() {
  ::sync_file_range(fd_.get(), submitted_, written_ - submitted_, SYNC_FILE_RANGE_WRITE);
  submitted_ = written_;
}

FileRecord NewFile::finish() {
  DSTRAIN_CHECK(written_ == record_.bytes, "{} lacks {} bytes", name_, record_.bytes - written_);
  flush_file(fd_.get(), name_);
  try {
    close_file(std::move(fd_), name_);
  } catch (...) {
    ::unlink(name_.c_str());
    throw;
  }
  record_.chunks = hasher_.finish();
  return std::move(record_);
}

}  // namespace dstrain::checkpoint
