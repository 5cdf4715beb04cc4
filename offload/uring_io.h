#pragma once
#include <memory>

#include "offload/file_io.h"
#include "runtime/base/result.h"
#include "runtime/profile/timeline.h"

namespace dstrain::offload {

/// I/O through io_uring(7): each thread has a ring of its own and keeps `queue_depth` operations in
/// it. Fails where the kernel does not let this process have one, or the build has no liburing;
/// throws Error{io} when it fails otherwise.
Result<std::unique_ptr<AsyncFileIo>> make_uring_io(const AioOptions& options,
                                                   profile::Timeline* timeline = nullptr);

}  // namespace dstrain::offload
