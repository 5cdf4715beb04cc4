#include "launcher/plan/core_binding.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {

void check_can_bind_cores() {
  fail(ErrorCode::config,
       "--bind_cores_to_rank: this build lacks hwloc; install libhwloc-dev and build again");
}

std::vector<CoreBinding> bind_cores(const std::vector<int>& /*listed*/, int /*local_size*/) {
  check_can_bind_cores();
  return {};
}

}  // namespace dstrain::launcher
