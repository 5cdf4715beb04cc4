#pragma once
#include <memory>
#include <string>

#include "offload/file_io.h"
#include "runtime/profile/timeline.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::offload {

struct MadeFileIo {
  std::unique_ptr<AsyncFileIo> io;
  std::string fallback;  ///< why io_uring was not used although no choice was made; else empty
};

/// Makes the I/O that DSTRAIN_IO asks for, or throws Error{io} if that is impossible. Without a
/// choice, uses io_uring, or threads where the system has none. Records reads and writes in
/// `timeline` unless it is null; it must outlive the result.
MadeFileIo make_file_io(const AioOptions& options,
                        IoKind kind,
                        profile::Timeline* timeline = nullptr);

}  // namespace dstrain::offload
