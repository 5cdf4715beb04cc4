#include "offload/uring_io.h"

namespace dstrain::offload {

Result<std::unique_ptr<AsyncFileIo>> make_uring_io(const AioOptions& /*options*/,
                                                   profile::Timeline* /*timeline*/) {
  return Failure{"this build has no io_uring (Debian: liburing-dev)"};
}

}  // namespace dstrain::offload
