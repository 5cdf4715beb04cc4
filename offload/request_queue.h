#pragma once
#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "offload/file_io.h"
#include "runtime/profile/timeline.h"

namespace dstrain::offload {

enum class Direction : std::uint8_t { read, write };

struct Request;

/// The part of a request that a thread is working on and that is still to be transferred.
struct Block {
  Request* request = nullptr;
  Direction direction = Direction::read;
  int fd = -1;
  Bytes offset = 0;
  std::span<std::byte> memory;
  bool stuck = false;  ///< the last operation transferred less than one piece
};

/// Holds the requests of callers, and gives their blocks to the threads of an AsyncFileIo, which
/// make the system calls and report the results; computes and verifies checksums. Reads and writes
/// have separate queues. The next block comes from the one with fewer blocks in flight, because a
/// disk may do both at once and neither should wait for the other. Thread-safe.
class RequestQueue {
 public:
  /// `block_size` is a multiple of io_alignment. Records in `timeline`, unless it is null, when
  /// blocks are in flight: from take() until they are settled.
  explicit RequestQueue(Bytes block_size, profile::Timeline* timeline = nullptr);
  RequestQueue(const RequestQueue&) = delete;
  RequestQueue& operator=(const RequestQueue&) = delete;
  RequestQueue(RequestQueue&&) = delete;
  RequestQueue& operator=(RequestQueue&&) = delete;
  ~RequestQueue();

  Ticket add(Direction direction, SwapFile& file, Bytes offset, std::span<std::byte> memory);
  [[nodiscard]] bool done(Ticket ticket) const;
  void wait(Ticket ticket);

  /// Returns the next block to transfer; nothing if no request has one.
  std::optional<Block> take();
  /// Blocks until there is one; returns nothing once the queue is closed.
  std::optional<Block> wait_and_take();
  /// Reports an operation on `block` that returned `result`: bytes, or a negative errno. Returns
  /// whether to repeat it with the rest of the block; otherwise the block is done.
  [[nodiscard]] bool settle(Block& block, std::int64_t result);

  /// Drops requests that have not begun: no more blocks are handed out.
  void close();
  [[nodiscard]] bool closed() const;

 private:
  struct Line {
    std::deque<Request*> waiting;  ///< have blocks left to take, in order
    int under_way = 0;             ///< number of blocks
  };
  Line& line_of(Direction direction) { return lines_[static_cast<std::size_t>(direction)]; }
  Line* next_line();
  std::optional<Block> take(std::unique_lock<std::mutex> lock);
  void finish(const Block& block, const std::string& failure);

  const Bytes block_size_;
  profile::Timeline* const timeline_;
  mutable std::mutex mutex_;
  std::condition_variable wanted_;    // there are blocks, or the queue is closed
  std::condition_variable finished_;  // a request is done
  std::map<std::uint64_t, std::unique_ptr<Request>> requests_;
  std::array<Line, 2> lines_;  // by direction
  std::uint64_t last_id_ = 0;
  bool closed_ = false;
};

/// The common part of the implementations: requests go into a queue that threads serve.
class QueuedFileIo : public AsyncFileIo {
 public:
  Ticket read(SwapFile& file, Bytes offset, std::span<std::byte> into) final;
  Ticket write(SwapFile& file, Bytes offset, std::span<const std::byte> from) final;
  [[nodiscard]] bool done(Ticket ticket) const final { return queue_.done(ticket); }
  void wait(Ticket ticket) final { queue_.wait(ticket); }

 protected:
  QueuedFileIo(const AioOptions& options, profile::Timeline* timeline);
  RequestQueue queue_;

 private:
  /// Tells threads that do not wait for the queue itself about a new request.
  virtual void wake() noexcept {}
};

/// Must be called first in each of those threads.
void become_io_thread();

}  // namespace dstrain::offload
