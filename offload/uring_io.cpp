#include "offload/uring_io.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <mutex>
#include <numeric>
#include <system_error>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>

#include <liburing.h>

#include "offload/request_queue.h"
#include "runtime/base/error.h"
#include "runtime/base/unique_handle.h"

namespace dstrain::offload {
namespace {

constexpr std::uint64_t woken = ~std::uint64_t{0};  // user_data of the poll for wake()
constexpr unsigned buffers_max = 1024;
constexpr auto part_max = static_cast<std::size_t>(gibibyte);  // the kernel's limit for one buffer

bool contains(std::span<const std::byte> outer, std::span<const std::byte> inner) {
  return outer.data() <= inner.data() && inner.data() + inner.size() <= outer.data() + outer.size();
}

/// Owns an initialized ring.
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

/// Memory that the kernel maps once for a ring, instead of for each operation.
class FixedBuffers {
 public:
  explicit FixedBuffers(Ring& ring);
  /// Returns whether the kernel accepted it. Any thread may call.
  bool add(std::span<std::byte> memory);
  /// Unregisters all buffers within `memory`. Any thread may call.
  void remove(std::span<std::byte> memory) noexcept;
  /// Returns the number of the buffer that contains all of `memory`; -1: none.
  [[nodiscard]] int find(std::span<const std::byte> memory) const;

 private:
  bool add_part(std::span<std::byte> memory);

  Ring& ring_;
  bool possible_;
  mutable std::mutex mutex_;
  std::vector<std::span<std::byte>> buffers_;  ///< by number; empty: removed
};

/// One thread with a ring: takes blocks, has the kernel transfer them, and settles them. Sleeps in
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

  /// Call when there are new blocks or the queue was closed. Any thread may call.
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
  std::vector<Block> slots_;       ///< in flight, indexed by the operation's user_data
  std::vector<std::size_t> free_;  ///< indices of free slots
  struct Ended {
    Block block;
    std::int64_t result;
  };
  std::deque<Ended> ended_;   ///< to be settled, in order
  std::vector<Block> again_;  ///< unfinished rests of blocks
  std::thread thread_;
};

Ring::Ring(unsigned entries) {
  const int result = ::io_uring_queue_init(entries, &ring_, 0);
  if (result < 0) fail_errno(-result, "io_uring_setup");
}

FixedBuffers::FixedBuffers(Ring& ring)
    : ring_(ring), possible_(::io_uring_register_buffers_sparse(ring.get(), buffers_max) == 0) {}

bool FixedBuffers::add(std::span<std::byte> memory) {
  const std::lock_guard lock(mutex_);
  bool all = true;
  for (std::size_t at = 0; at < memory.size() && all; at += part_max) {
    all = add_part(memory.subspan(at, std::min(part_max, memory.size() - at)));
  }
  return all;
}

/// The kernel may refuse, e.g. over the limit on locked memory; then the memory is used like any
/// other.
bool FixedBuffers::add_part(std::span<std::byte> memory) {
  if (!possible_ || buffers_.size() == buffers_max) return false;
  const iovec place{memory.data(), memory.size()};
  const auto number = static_cast<unsigned>(buffers_.size());
  if (::io_uring_register_buffers_update_tag(ring_.get(), number, &place, nullptr, 1) != 1) {
    return false;
  }
  buffers_.push_back(memory);
  return true;
}

void FixedBuffers::remove(std::span<std::byte> memory) noexcept {
  const std::lock_guard lock(mutex_);
  for (unsigned number = 0; number < buffers_.size(); ++number) {
    if (buffers_[number].empty() || !contains(memory, buffers_[number])) continue;
    const iovec nothing{};
    ::io_uring_register_buffers_update_tag(ring_.get(), number, &nothing, nullptr, 1);
    buffers_[number] = {};
  }
}

int FixedBuffers::find(std::span<const std::byte> memory) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      buffers_, [&](std::span<const std::byte> buffer) { return contains(buffer, memory); });
  return found == buffers_.end() ? -1 : static_cast<int>(found - buffers_.begin());
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
    // A finished block first frees its slot and is verified while the disk works on its successor:
    // some disks finish many operations together.
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
    // Submit, so that the disk works while the next block is hashed.
    const bool more = block->direction == Direction::write && !free_.empty();
    if (options_.single_submit || more) ::io_uring_submit(ring_.get());
  }
}

/// Unfinished rests come first.
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
  // Interrupted, or the kernel has results to deliver first: the loop tries again.
  const bool passing = result >= 0 || result == -EINTR || result == -EAGAIN || result == -EBUSY;
  DSTRAIN_CHECK(passing, "io_uring_enter: error {}", -result);
}

/// Takes one result, so that its slot is refilled at once. Returns whether there was one.
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

class UringIo final : public QueuedFileIo {
 public:
  UringIo(const AioOptions& options, profile::Timeline* timeline)
      : QueuedFileIo(options, timeline) {
    for (int i = 0; i < options.threads; ++i) {
      workers_.push_back(std::make_unique<UringWorker>(queue_, options));
    }
  }

  bool register_memory(std::span<std::byte> memory) override {
    bool all = true;
    for (const auto& worker : workers_) all = worker->register_memory(memory) && all;
    return all;
  }
  void unregister_memory(std::span<std::byte> memory) noexcept override {
    for (const auto& worker : workers_) worker->unregister_memory(memory);
  }
  [[nodiscard]] const char* name() const noexcept override { return "io_uring"; }

 private:
  void wake() noexcept override {
    for (const auto& worker : workers_) worker->wake();
  }

  std::vector<std::unique_ptr<UringWorker>> workers_;  // destroyed before the base class's queue
};

/// Returns why this process cannot have a ring (an old kernel, a sandbox, io_uring_disabled, or a
/// limit on locked memory); 0: it can.
int refusal() {
  io_uring ring{};
  const int result = ::io_uring_queue_init(2, &ring, 0);
  if (result == 0) ::io_uring_queue_exit(&ring);
  return result == -ENOSYS || result == -EPERM || result == -ENOMEM ? -result : 0;
}

}  // namespace

Result<std::unique_ptr<AsyncFileIo>> make_uring_io(const AioOptions& options,
                                                   profile::Timeline* timeline) {
  if (const int error = refusal(); error != 0) {
    return Failure{"io_uring is refused: " + std::generic_category().message(error)};
  }
  return std::unique_ptr<AsyncFileIo>(std::make_unique<UringIo>(options, timeline));
}

}  // namespace dstrain::offload
