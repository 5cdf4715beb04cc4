#include "offload/make_file_io.h"

#include "offload/thread_io.h"
#include "offload/uring_io.h"
#include "runtime/base/error.h"

namespace dstrain::offload {

MadeFileIo make_file_io(const AioOptions& options, IoKind kind, profile::Timeline* timeline) {
  if (kind == IoKind::threads) return {std::make_unique<ThreadIo>(options, timeline), {}};
  Result<std::unique_ptr<AsyncFileIo>> uring = make_uring_io(options, timeline);
  if (uring.ok()) return {std::move(uring.value()), {}};
  if (kind == IoKind::uring) fail(ErrorCode::io, "{}=uring: {}", env::io, uring.error());
  return {std::make_unique<ThreadIo>(options, timeline), uring.error()};
}

}  // namespace dstrain::offload
