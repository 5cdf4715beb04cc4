#pragma once
#include "offload/request_queue.h"

namespace dstrain::offload {

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
