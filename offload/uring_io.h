#pragma once
#include <memory>

#include "offload/file_io.h"
#include "runtime/base/result.h"
#include "runtime/profile/timeline.h"

namespace dstrain::offload {

/// Does I/O through io_uring(7): each thread has its own ring with `queue_depth` operations. Fails
/// if the kernel refuses this process a ring or the build lacks liburing; throws Error{io} for
/// other errors.
Result<std::unique_ptr<AsyncFileIo>> make_uring_io(const AioOptions& options,
                                                   profile::Timeline* timeline = nullptr);

}  // namespace dstrain::offload
