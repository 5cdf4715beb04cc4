#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "offload/swap_file.h"
#include "runtime/base/units.h"

namespace dstrain::offload {

/// The `aio` section of DeepSpeed's configuration.
struct AioOptions {
  Bytes block_size = mebibyte;  ///< most bytes of one operation; a multiple of io_alignment
  int queue_depth = 8;          ///< operations in flight, per thread
  int threads = 1;              ///< intra_op_parallelism; they share the blocks of each request
  // io_uring only:
  bool single_submit = false;  ///< each operation is submitted by itself
  bool overlap_events = true;  ///< replace each finished operation at once; else wait for all
};

/// A read or write that was submitted. Wait for each exactly once.
struct [[nodiscard]] Ticket {
  std::uint64_t id = 0;
};

/// Reads and writes swap files while the caller computes. Its threads cut requests into blocks,
/// keep as many in flight as the options say, checksum what they write and verify what they read;
/// idle threads sleep. Reads begin in the order of the calls, as do writes; requests may finish in
/// any order. Concurrent requests must not overlap in the file or in memory unless all of them
/// read, so wait() for a write before reading it. Files and memory must outlive their requests.
/// Thread-safe.
class AsyncFileIo {
 public:
  AsyncFileIo() = default;
  AsyncFileIo(const AsyncFileIo&) = delete;
  AsyncFileIo& operator=(const AsyncFileIo&) = delete;
  AsyncFileIo(AsyncFileIo&&) = delete;
  AsyncFileIo& operator=(AsyncFileIo&&) = delete;
  /// Waits for the blocks in flight and drops the others.
  virtual ~AsyncFileIo() = default;

  /// Address, offset and size are multiples of io_alignment; the range lies within the file.
  virtual Ticket read(SwapFile& file, Bytes offset, std::span<std::byte> into) = 0;
  virtual Ticket write(SwapFile& file, Bytes offset, std::span<const std::byte> from) = 0;
  /// Whether wait() would not block.
  [[nodiscard]] virtual bool done(Ticket ticket) const = 0;
  /// Blocks until the request is done; then none of its memory is in use. Throws Error{io} with the
  /// file and the place if the system reported an error, the file ended, or the data read is not
  /// what was written.
  virtual void wait(Ticket ticket) = 0;

  /// Prepares memory for repeated use in requests until unregister_memory() or the end of this
  /// object; it must exist until then. Returns whether this has any effect; requests work without
  /// it, too.
  virtual bool register_memory(std::span<std::byte> memory) = 0;
  /// Undoes register_memory(`memory`). No request may be using it.
  virtual void unregister_memory(std::span<std::byte> memory) noexcept = 0;

  /// "io_uring" or "threads".
  [[nodiscard]] virtual const char* name() const noexcept = 0;
};

}  // namespace dstrain::offload
