// The plug-in for GPUs in a build without NCCL's header.
#include "runtime/base/error.h"
#include "runtime/comm/nccl/connect_nccl.h"

namespace dstrain::comm {

NcclPresence find_nccl() {
  return {.version = "", .obstacle = "libdstrain_cuda.so is built without NCCL"};
}

std::unique_ptr<Communicator> make_nccl_communicator(NcclMember /*member*/) {
  fail(ErrorCode::internal, "{}", find_nccl().obstacle);
}

}  // namespace dstrain::comm
