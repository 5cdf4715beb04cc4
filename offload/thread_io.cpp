#include "offload/thread_io.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <unistd.h>

#include "runtime/base/error.h"

namespace dstrain::offload {
namespace {

constexpr int threads_max = 64;

std::int64_t transfer(const Block& block) {
  const ssize_t result =
      block.direction == Direction::read
          ? ::pread(block.fd, block.memory.data(), block.memory.size(), block.offset)
          : ::pwrite(block.fd, block.memory.data(), block.memory.size(), block.offset);
  return result < 0 ? -errno : result;
}

}  // namespace

ThreadIo::ThreadIo(const AioOptions& options, profile::Timeline* timeline)
    : QueuedFileIo(options, timeline) {
  const std::int64_t wanted = std::int64_t{options.threads} * options.queue_depth;
  const auto count = static_cast<int>(std::min<std::int64_t>(wanted, threads_max));
  try {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    stop();
    fail(ErrorCode::io, "start {} threads for I/O: {}", count, error.what());
  }
}

ThreadIo::~ThreadIo() {
  stop();
}

void ThreadIo::stop() noexcept {
  queue_.close();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadIo::work() {
  become_io_thread();
  while (std::optional<Block> block = queue_.wait_and_take()) {
    while (queue_.settle(*block, transfer(*block))) {
    }
  }
}

}  // namespace dstrain::offload
