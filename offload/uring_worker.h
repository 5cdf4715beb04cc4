#pragma once
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include <liburing.h>

#include "offload/request_queue.h"
#include "runtime/base/unique_handle.h"

namespace dstrain::offload {

/// An initialised ring.
class Ring {
 public:
  /// Throws Error{io}.
  explicit Ring(unsigned entries);
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  Ring(Ring&&) = delete;
  Ring& operator=(Ring&&) = delete;
  ~Ring() { ::io_uring_queue_exit(&ring_); }
  [[nodiscard]] io_uring* get() noexcept { return &ring_; }

 private:
  io_uring ring_{};
};

/// Memory that the kernel has mapped once for a ring, so that no operation needs to.
class FixedBuffers {
 public:
  explicit FixedBuffers(Ring& ring);
  /// Whether the kernel took it. Any thread may call.
  bool add(std::span<std::byte> memory);
  /// What lies in `memory` is no buffer any more. Likewise.
  void remove(std::span<std::byte> memory) noexcept;
  /// The number of the buffer that holds all of `memory`; -1: none.
  [[nodiscard]] int find(std::span<const std::byte> memory) const;

 private:
  bool add_part(std::span<std::byte> memory);

  Ring& ring_;
  bool possible_;
  mutable std::mutex mutex_;
  std::vector<std::span<std::byte>> buffers_;  ///< by number; empty: removed
};

/// One thread with a ring: takes blocks, has the kernel transfer them, settles them. It sleeps in
/// the kernel until an operation ends or wake() is called.
class UringWorker {
 public:
  UringWorker(RequestQueue& queue, const AioOptions& options);
  UringWorker(const UringWorker&) = delete;
  UringWorker& operator=(const UringWorker&) = delete;
  UringWorker(UringWorker&&) = delete;
  UringWorker& operator=(UringWorker&&) = delete;
  /// Closes the queue.
  ~UringWorker();

  /// There are new blocks, or the queue was closed. Any thread may call.
  void wake() noexcept;
  bool register_memory(std::span<std::byte> memory) { return buffers_.add(memory); }
  void unregister_memory(std::span<std::byte> memory) noexcept { buffers_.remove(memory); }

 private:
  void run();
  void wait_for_wake();
  void start_blocks();
  void start(std::size_t slot);
  std::optional<Block> next_block();
  void submit_and_wait(unsigned results);
  bool reap();
  void settle_one();
  io_uring_sqe* next_entry();

  RequestQueue& queue_;
  const AioOptions options_;
  Ring ring_;
  FixedBuffers buffers_;
  UniqueFd wake_fd_;
  std::vector<Block> slots_;       ///< what is in flight, by the operation's user_data
  std::vector<std::size_t> free_;  ///< slots
  struct Ended {
    Block block;
    std::int64_t result;
  };
  std::deque<Ended> ended_;   ///< to be settled, in order
  std::vector<Block> again_;  ///< what is left of blocks that were
  std::thread thread_;
};

}  // namespace dstrain::offload
