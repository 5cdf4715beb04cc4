#include "runtime/checkpoint/shard_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/base/unique_handle.h"
#include "runtime/os/fd_io.h"
#include "runtime/safetensors/header.h"

namespace dstrain::checkpoint {
namespace {

constexpr Bytes writeback_bytes = 8 * mebibyte;
constexpr Bytes flush_bytes = mebibyte;

/// Writes a new file from its first byte to its last, hashing on the way. Without finish() the file
/// is removed at the end of the scope. Every failure throws Error{io}.
class NewFile {
 public:
  /// Creates `root` / `path` and reserves space for all of it.
  NewFile(const std::filesystem::path& root, const std::string& path, Bytes bytes);
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  NewFile(NewFile&&) = delete;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  void append(
      std::span<const std::byte> bytes, FunctionRef<void()> on_piece = [] {});
  /// Call once, last: flushes the file, but not its directory.
  FileRecord finish(FunctionRef<void()> on_piece);

 private:
  void start_writeback();
  void flush_pieces(FunctionRef<void()> on_piece);

  FileRecord record_;
  std::string name_;
  UniqueFd fd_;  ///< until finish()
  ChunkHasher hasher_;
  Bytes written_ = 0;
  Bytes submitted_ = 0;  ///< bytes whose writeback has been started
};

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

void NewFile::append(std::span<const std::byte> bytes, FunctionRef<void()> on_piece) {
  DSTRAIN_CHECK(static_cast<Bytes>(bytes.size()) <= record_.bytes - written_, "{} gets too much",
                name_);
  while (!bytes.empty()) {  // in pieces that are still in the cache when they are copied
    const auto piece = bytes.first(std::min(bytes.size(), static_cast<std::size_t>(chunk_bytes)));
    hasher_.add(piece);
    write_fully(fd_.get(), piece, name_);
    written_ += static_cast<Bytes>(piece.size());
    bytes = bytes.subspan(piece.size());
    if (written_ - submitted_ < writeback_bytes) continue;
    start_writeback();
    on_piece();
  }
}

/// Starts writeback, so that the disk works while the next pieces are hashed. Only a hint: finish()
/// flushes, and reports failures.
void NewFile::start_writeback() {
  ::sync_file_range(fd_.get(), submitted_, written_ - submitted_, SYNC_FILE_RANGE_WRITE);
  submitted_ = written_;
}

/// Flushes in pieces, because a flush takes minutes on a slow disk and the save must show progress
/// meanwhile. A failure that is reported here is not reported again. Without this system call, the
/// final flush does it all.
void NewFile::flush_pieces(FunctionRef<void()> on_piece) {
  constexpr unsigned wait =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  for (Bytes at = 0; at < written_; at += flush_bytes) {
    if (::sync_file_range(fd_.get(), at, flush_bytes, wait) != 0) {
      if (errno == EIO || errno == ENOSPC || errno == EDQUOT) fail_errno(errno, "flush " + name_);
      return;
    }
    on_piece();
  }
}

FileRecord NewFile::finish(FunctionRef<void()> on_piece) {
  DSTRAIN_CHECK(written_ == record_.bytes, "{} lacks {} bytes", name_, record_.bytes - written_);
  flush_pieces(on_piece);
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

}  // namespace

FileRecord write_shard(const std::filesystem::path& root,
                       const std::string& path,
                       std::span<const ShardTensor> tensors,
                       FunctionRef<void()> on_piece) {
  std::vector<safetensors::TensorInfo> infos;
  for (const auto& [name, values] : tensors) {
    DSTRAIN_CHECK(values.dense(), "{}", name);
    infos.push_back({name, values.dtype(), values.shape()});
  }
  const safetensors::Layout layout = safetensors::lay_out(infos);
  NewFile file(root, path, static_cast<Bytes>(layout.bytes));
  file.append(std::as_bytes(std::span(layout.head)));
  for (const auto& [name, values] : tensors) {
    file.append({values.data(), static_cast<std::size_t>(values.bytes())}, on_piece);
  }
  return file.finish(on_piece);
}

FileRecord write_text(const std::filesystem::path& root,
                      const std::string& path,
                      std::string_view text) {
  NewFile file(root, path, static_cast<Bytes>(text.size()));
  file.append(std::as_bytes(std::span(text)));
  return file.finish([] {});
}

FileRecord record_file(const std::filesystem::path& root, const std::string& path) {
  const std::string name = (root / path).string();
  const UniqueFd fd(::open(name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) fail_errno(errno, "open " + name);
  FileRecord record{path, 0, {}};
  std::vector<std::byte> chunk(static_cast<std::size_t>(chunk_bytes));
  while (true) {
    const std::size_t size =
        read_fully_at(fd.get(), static_cast<std::uint64_t>(record.bytes), chunk, name);
    if (size == 0) return record;
    record.chunks.push_back(checksum_of(std::span(chunk).first(size)));
    record.bytes += static_cast<Bytes>(size);
  }
}

}  // namespace dstrain::checkpoint
