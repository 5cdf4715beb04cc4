#include "offload/request_queue.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <pthread.h>

#include "runtime/base/error.h"
#include "runtime/numeric/parallel_for.h"

namespace dstrain::offload {

struct Request {
  Direction direction;
  SwapFile& file;
  Bytes offset;
  std::span<std::byte> memory;
  std::size_t taken = 0;  ///< bytes handed out as blocks
  int in_flight = 0;      ///< number of blocks
  std::string failure;    ///< the first block's error

  [[nodiscard]] bool done() const { return taken == memory.size() && in_flight == 0; }
  [[nodiscard]] std::string place(Bytes at, std::size_t size, std::string_view what) const {
    return fmt::format("{}: {} {} bytes at {}: {}", file.name(),
                       direction == Direction::read ? "read" : "write", size, at, what);
  }
};

namespace {

/// Verifies what was read; returns what is wrong with it, or nothing.
std::string check_read(const Request& request, Bytes offset, std::span<const std::byte> read) {
  const std::optional<FileRange> range = request.file.damage(offset, read);
  if (!range) return {};
  return fmt::format("{}: bytes {} to {} are not what was written there", request.file.name(),
                     range->begin, range->end - 1);
}

profile::Lane lane_of(Direction direction) {
  return direction == Direction::read ? profile::Lane::disk_reads : profile::Lane::disk_writes;
}

profile::Activity activity_of(Direction direction) {
  return direction == Direction::read ? profile::Activity::read : profile::Activity::write;
}

void check_aligned(std::int64_t value, const char* what) {
  DSTRAIN_CHECK(value % io_alignment == 0, "{} {} is no multiple of {}", what, value, io_alignment);
}

}  // namespace

RequestQueue::RequestQueue(Bytes block_size, profile::Timeline* timeline)
    : block_size_(block_size), timeline_(timeline) {
  DSTRAIN_CHECK(block_size > 0, "block size {}", block_size);
  check_aligned(block_size, "block size");
}

RequestQueue::~RequestQueue() = default;

Ticket RequestQueue::add(Direction direction,
                         SwapFile& file,
                         Bytes offset,
                         std::span<std::byte> memory) {
  const auto size = static_cast<Bytes>(memory.size());
  check_aligned(static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(memory.data())),
                "address");
  check_aligned(offset, "offset");
  check_aligned(size, "size");
  DSTRAIN_CHECK(offset >= 0 && size <= file.bytes() - offset, "{} bytes at {} of {}", size, offset,
                file.bytes());
  const std::lock_guard lock(mutex_);
  auto request = std::make_unique<Request>(Request{direction, file, offset, memory, 0, 0, {}});
  if (size > 0) line_of(direction).waiting.push_back(request.get());
  requests_.emplace(++last_id_, std::move(request));
  wanted_.notify_all();
  return {last_id_};
}

bool RequestQueue::done(Ticket ticket) const {
  const std::lock_guard lock(mutex_);
  const auto entry = requests_.find(ticket.id);
  return entry == requests_.end() || entry->second->done();
}

void RequestQueue::wait(Ticket ticket) {
  std::unique_lock lock(mutex_);
  const auto entry = requests_.find(ticket.id);
  DSTRAIN_CHECK(entry != requests_.end(), "no request {}, or it was waited for", ticket.id);
  finished_.wait(lock, [&] { return entry->second->done(); });
  const std::string failure = std::move(entry->second->failure);
  requests_.erase(entry);
  if (!failure.empty()) fail(ErrorCode::io, "{}", failure);
}

RequestQueue::Line* RequestQueue::next_line() {
  Line* next = nullptr;
  for (Line& line : lines_) {
    if (line.waiting.empty()) continue;
    if (next == nullptr || line.under_way < next->under_way) next = &line;
  }
  return next;
}

std::optional<Block> RequestQueue::take(std::unique_lock<std::mutex> lock) {
  Line* const line = next_line();
  if (line == nullptr) return std::nullopt;
  Request& request = *line->waiting.front();
  const std::size_t size =
      std::min(static_cast<std::size_t>(block_size_), request.memory.size() - request.taken);
  const Block block{&request, request.direction, request.file.fd(),
                    request.offset + static_cast<Bytes>(request.taken),
                    request.memory.subspan(request.taken, size)};
  request.taken += size;
  ++request.in_flight;
  ++line->under_way;
  if (timeline_ != nullptr) {
    timeline_->begin(lane_of(block.direction), activity_of(block.direction),
                     static_cast<Bytes>(size));
  }
  if (request.taken == request.memory.size()) line->waiting.pop_front();
  lock.unlock();
  if (block.direction == Direction::write) request.file.note(block.offset, block.memory);
  return block;
}

std::optional<Block> RequestQueue::take() {
  return take(std::unique_lock(mutex_));
}

std::optional<Block> RequestQueue::wait_and_take() {
  std::unique_lock lock(mutex_);
  wanted_.wait(lock, [this] { return closed_ || next_line() != nullptr; });
  return take(std::move(lock));
}

bool RequestQueue::settle(Block& block, std::int64_t result) {
  if (result == -EINTR || result == -EAGAIN) return true;
  const Request& request = *block.request;
  if (result < 0) {
    const std::string text = std::generic_category().message(static_cast<int>(-result));
    finish(block, request.place(block.offset, block.memory.size(), text));
    return false;
  }
  // Continue at the last aligned position.
  const auto size = static_cast<std::size_t>(result / io_alignment * io_alignment);
  DSTRAIN_CHECK(size <= block.memory.size(), "{} of {} bytes", size, block.memory.size());
  // It ended within a piece: retry once, so that the system reports the reason.
  if (size == 0 && result > 0 && !std::exchange(block.stuck, true)) return true;
  if (size == 0) {
    const bool reads = block.direction == Direction::read;
    finish(block, request.place(block.offset, block.memory.size(),
                                reads ? "the file ends before" : "nothing more was written"));
    return false;
  }
  if (block.direction == Direction::read) {
    const std::string failure = check_read(request, block.offset, block.memory.first(size));
    if (!failure.empty()) {
      finish(block, failure);
      return false;
    }
  }
  block.stuck = false;
  block.offset += static_cast<Bytes>(size);
  block.memory = block.memory.subspan(size);
  if (!block.memory.empty()) return true;
  finish(block, {});
  return false;
}

void RequestQueue::finish(const Block& block, const std::string& failure) {
  const std::lock_guard lock(mutex_);
  Request& request = *block.request;
  --request.in_flight;
  --line_of(request.direction).under_way;
  if (timeline_ != nullptr) timeline_->end(lane_of(request.direction));
  if (!failure.empty()) {
    if (request.failure.empty()) request.failure = failure;
    if (request.taken < request.memory.size()) {  // no need for the rest
      request.taken = request.memory.size();
      std::erase(line_of(request.direction).waiting, &request);
    }
  }
  if (request.done()) finished_.notify_all();
}

void RequestQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (Line& line : lines_) line.waiting.clear();
  wanted_.notify_all();
}

bool RequestQueue::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

QueuedFileIo::QueuedFileIo(const AioOptions& options, profile::Timeline* timeline)
    : queue_(options.block_size, timeline) {
  DSTRAIN_CHECK(options.queue_depth > 0 && options.threads > 0, "queue depth {}, {} threads",
                options.queue_depth, options.threads);
}

Ticket QueuedFileIo::read(SwapFile& file, Bytes offset, std::span<std::byte> into) {
  const Ticket ticket = queue_.add(Direction::read, file, offset, into);
  wake();
  return ticket;
}

Ticket QueuedFileIo::write(SwapFile& file, Bytes offset, std::span<const std::byte> from) {
  auto* const memory = const_cast<std::byte*>(from.data());  // a block serves both directions
  const Ticket ticket = queue_.add(Direction::write, file, offset, {memory, from.size()});
  wake();
  return ticket;
}

void become_io_thread() {
  ::pthread_setname_np(::pthread_self(), "dstrain-io");
  become_helper_thread();
}

}  // namespace dstrain::offload
