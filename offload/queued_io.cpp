#include "offload/queued_io.h"

#include <pthread.h>

#include "runtime/base/error.h"
#include "runtime/base/parallel_for.h"

namespace dstrain::offload {

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
  auto* const memory = const_cast<std::byte*>(from.data());  // a block is for either direction
  const Ticket ticket = queue_.add(Direction::write, file, offset, {memory, from.size()});
  wake();
  return ticket;
}

void become_io_thread() {
  ::pthread_setname_np(::pthread_self(), "dstrain-io");
  become_helper_thread();
}

}  // namespace dstrain::offload
