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

/// A piece of a request that a thread works on: what of it is still to be transferred.
struct Block {
  Request* request = nullptr;
  Direction direction = Direction::read;
  int fd = -1;
  Bytes offset = 0;
  std::span<std::byte> memory;
  bool stuck = false;  ///< the last operation ended within the first piece
};

/// What callers ask for and what the threads of an AsyncFileIo work on; checksums included. The
/// threads take blocks, make the system calls, and settle the blocks with what these returned.
/// Reads and writes wait in lines of their own, and the next block is of the one that has fewer
/// under way: a disk may do both at once, and neither waits for the other. Thread-safe.
class RequestQueue {
 public:
  /// `block_size` is a multiple of io_alignment. When blocks are under way is told to the timeline,
  /// unless it is null: from before they are handed out until they are settled.
  explicit RequestQueue(Bytes block_size, profile::Timeline* timeline = nullptr);
  RequestQueue(const RequestQueue&) = delete;
  RequestQueue& operator=(const RequestQueue&) = delete;
  RequestQueue(RequestQueue&&) = delete;
  RequestQueue& operator=(RequestQueue&&) = delete;
  ~RequestQueue();

  Ticket add(Direction direction, SwapFile& file, Bytes offset, std::span<std::byte> memory);
  [[nodiscard]] bool done(Ticket ticket) const;
  void wait(Ticket ticket);

  /// The next block, ready to be transferred; none when no request has one.
  std::optional<Block> take();
  /// Waits for one; none once the queue is closed.
  std::optional<Block> wait_and_take();
  /// After an operation on `block` that returned `result`: bytes, or an errno below 0. Says whether
  /// it is to be made again, with what is left of the block. Else the block is done.
  [[nodiscard]] bool settle(Block& block, std::int64_t result);

  /// Drops what has not begun: no block is handed out any more.
  void close();
  [[nodiscard]] bool closed() const;

 private:
  struct Line {
    std::deque<Request*> waiting;  ///< have blocks that nobody took, in order
    int under_way = 0;             ///< blocks
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

/// What the implementations have in common: callers' requests go into a queue that threads serve.
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
  /// Tells threads that do not wait for the queue itself of a new request.
  virtual void wake() noexcept {}
};

/// What each of those threads does first.
void become_io_thread();

}  // namespace dstrain::offload
