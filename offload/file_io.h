#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "offload/swap_file.h"
#include "runtime/base/units.h"

namespace dstrain::offload {

/// DeepSpeed's `aio` section.
struct AioOptions {
  Bytes block_size = mebibyte;  ///< most bytes of one operation; a multiple of io_alignment
  int queue_depth = 8;          ///< operations in flight, per thread
  int threads = 1;              ///< intra_op_parallelism: they share the blocks of each request
  // Of io_uring alone:
  bool single_submit = false;  ///< each operation is handed to the kernel by itself
  bool overlap_events = true;  ///< one that ends makes room for the next; else all end first
};

/// A read or a write that has been asked for. To be waited for once.
struct [[nodiscard]] Ticket {
  std::uint64_t id = 0;
};

/// Reads and writes swap files while the caller computes. Threads of its own cut requests into
/// blocks, keep as many of them in flight as the options say, checksum what they write and check
/// what they have read; they sleep when there is nothing to do. Reads begin in the order in
/// which they are made, as do writes, and all may end in any. Those that are under way together
/// must not overlap in the file or in memory unless all of them read: wait() stands between a write
/// and a read of it. Files and memory must outlive their requests. Thread-safe.
class AsyncFileIo {
 public:
  AsyncFileIo() = default;
  AsyncFileIo(const AsyncFileIo&) = delete;
  AsyncFileIo& operator=(const AsyncFileIo&) = delete;
  AsyncFileIo(AsyncFileIo&&) = delete;
  AsyncFileIo& operator=(AsyncFileIo&&) = delete;
  /// Waits for the blocks in flight and drops what has not begun.
  virtual ~AsyncFileIo() = default;

  /// Address, offset and size are multiples of io_alignment, within the file.
  virtual Ticket read(SwapFile& file, Bytes offset, std::span<std::byte> into) = 0;
  virtual Ticket write(SwapFile& file, Bytes offset, std::span<const std::byte> from) = 0;
  /// Whether wait() would not block.
  [[nodiscard]] virtual bool done(Ticket ticket) const = 0;
  /// Blocks until the request is done; then none of its memory is in use. Throws Error{io} that
  /// names the file and the place when the system refused a part, the file ended, or what was read
  /// is not what was written.
  virtual void wait(Ticket ticket) = 0;

  /// Prepares memory that is read into and written from again and again, until unregister_memory()
  /// or this object's end; it must be there until then. Says whether that has an effect: where it
  /// has none, all works as without.
  virtual bool register_memory(std::span<std::byte> memory) = 0;
  /// What was registered as `memory` may go. No request uses it.
  virtual void unregister_memory(std::span<std::byte> memory) noexcept = 0;

  /// "io_uring" or "threads".
  [[nodiscard]] virtual const char* name() const noexcept = 0;
};

}  // namespace dstrain::offload
