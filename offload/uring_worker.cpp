#include "offload/uring_worker.h"

#include <algorithm>
#include <cerrno>
#include <numeric>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>

#include "offload/queued_io.h"
#include "runtime/base/error.h"

namespace dstrain::offload {
namespace {

constexpr std::uint64_t woken = ~std::uint64_t{0};  // user_data of the wait for wake()

}  // namespace

Ring::Ring(unsigned entries) {
  const int result = ::io_uring_queue_init(entries, &ring_, 0);
  if (result < 0) fail_errno(-result, "io_uring_setup");
}

UringWorker::UringWorker(RequestQueue& queue, const AioOptions& options)
    : queue_(queue),
      options_(options),
      ring_(static_cast<unsigned>(options.queue_depth) + 1),
      buffers_(ring_),
      wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      slots_(static_cast<std::size_t>(options.queue_depth)),
      free_(slots_.size()) {
  if (!wake_fd_) fail_errno(errno, "eventfd");
  std::iota(free_.rbegin(), free_.rend(), std::size_t{0});
  thread_ = std::thread([this] { run(); });
}

UringWorker::~UringWorker() {
  queue_.close();
  wake();
  thread_.join();
}

void UringWorker::wake() noexcept {
  ::eventfd_write(wake_fd_.get(), 1);
}

void UringWorker::run() {
  become_io_thread();
  wait_for_wake();
  while (true) {
    start_blocks();
    if (ended_.empty() && free_.size() == slots_.size() && queue_.closed()) return;
    submit_and_wait(ended_.empty() ? 1 : 0);
    // What has ended makes room first, and is checked while the disk works on what takes its place:
    // some disks end many operations together.
    if (!reap()) settle_one();
  }
}

io_uring_sqe* UringWorker::next_entry() {
  io_uring_sqe* const entry = ::io_uring_get_sqe(ring_.get());
  DSTRAIN_CHECK(entry != nullptr, "the ring is full");
  return entry;
}

void UringWorker::wait_for_wake() {
  io_uring_sqe* const entry = next_entry();
  ::io_uring_prep_poll_add(entry, wake_fd_.get(), POLLIN);
  ::io_uring_sqe_set_data64(entry, woken);
}

void UringWorker::start_blocks() {
  if (!options_.overlap_events && free_.size() < slots_.size()) return;
  while (!free_.empty()) {
    const std::optional<Block> block = next_block();
    if (!block) return;
    const std::size_t slot = free_.back();
    free_.pop_back();
    slots_[slot] = *block;
    start(slot);
    // The disk works while the next block is hashed.
    const bool more = block->direction == Direction::write && !free_.empty();
    if (options_.single_submit || more) ::io_uring_submit(ring_.get());
  }
}

/// What is left of one that stopped short comes first.
std::optional<Block> UringWorker::next_block() {
  if (again_.empty()) return queue_.take();
  const Block block = again_.back();
  again_.pop_back();
  return block;
}

void UringWorker::start(std::size_t slot) {
  const Block& block = slots_[slot];
  const int buffer = buffers_.find(block.memory);
  const auto size = static_cast<unsigned>(block.memory.size());
  const auto offset = static_cast<std::uint64_t>(block.offset);
  void* const memory = block.memory.data();
  io_uring_sqe* const entry = next_entry();
  if (block.direction == Direction::read) {
    buffer < 0 ? ::io_uring_prep_read(entry, block.fd, memory, size, offset)
               : ::io_uring_prep_read_fixed(entry, block.fd, memory, size, offset, buffer);
  } else {
    buffer < 0 ? ::io_uring_prep_write(entry, block.fd, memory, size, offset)
               : ::io_uring_prep_write_fixed(entry, block.fd, memory, size, offset, buffer);
  }
  ::io_uring_sqe_set_data64(entry, slot);
}

void UringWorker::submit_and_wait(unsigned results) {
  const int result = ::io_uring_submit_and_wait(ring_.get(), results);
  // Interrupted, or the kernel wants to be rid of results first: both come round again.
  const bool passing = result >= 0 || result == -EINTR || result == -EAGAIN || result == -EBUSY;
  DSTRAIN_CHECK(passing, "io_uring_enter: error {}", -result);
}

/// One at a time, so that its room is filled at once. Says whether there was one.
bool UringWorker::reap() {
  io_uring_cqe* entry = nullptr;
  if (::io_uring_peek_cqe(ring_.get(), &entry) != 0) return false;
  const std::uint64_t data = ::io_uring_cqe_get_data64(entry);
  const std::int64_t result = entry->res;
  ::io_uring_cqe_seen(ring_.get(), entry);
  if (data == woken) {
    eventfd_t ignored = 0;
    ::eventfd_read(wake_fd_.get(), &ignored);
    wait_for_wake();
  } else {
    ended_.push_back({slots_[data], result});
    free_.push_back(data);
  }
  return true;
}

void UringWorker::settle_one() {
  if (ended_.empty()) return;
  auto [block, result] = ended_.front();
  ended_.pop_front();
  if (queue_.settle(block, result)) again_.push_back(block);
}

}  // namespace dstrain::offload
