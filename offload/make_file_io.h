#pragma once
#include <memory>
#include <string>

#include "offload/file_io.h"
#include "runtime/profile/timeline.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::offload {

struct MadeFileIo {
  std::unique_ptr<AsyncFileIo> io;
  std::string fallback;  ///< why it is not io_uring although nobody chose; else empty
};

/// io_uring, or threads where the system has none; or what is asked for (DSTRAIN_IO), which throws
/// Error{io} where it cannot be had. When it reads and writes is told to the timeline, unless it is
/// null; that must outlive it.
MadeFileIo make_file_io(const AioOptions& options,
                        IoKind kind,
                        profile::Timeline* timeline = nullptr);

}  // namespace dstrain::offload
