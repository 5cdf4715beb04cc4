// The plug-in of GPUs where NCCL's header was not found.
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
