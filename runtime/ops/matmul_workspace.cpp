#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/ops/matmul_plan.h"

namespace dstrain::ops {
namespace {

/// The most workspace that cuBLASLt's search for an algorithm may use. NVIDIA recommends it for
/// Hopper (cuBLAS, cublasSetWorkspace; 4 MiB before); llm.c and PyTorch use as much. Products run
/// one after another, and each unit reserves it once.
constexpr Bytes cublaslt_workspace = 32 * mebibyte;

/// Returns the workspace for any CPU.
Bytes planned_workspace(const MatmulArgs& args) {
  const auto planned = [&args](cpu::Bf16Products products) {
    return plan_matmul(args, matmul_compute(args, products)).workspace();
  };
  return std::max(planned(cpu::Bf16Products::native), planned(cpu::Bf16Products::widened));
}

}  // namespace

Bytes matmul_workspace(const MatmulArgs& args, DeviceKind device) {
  switch (device) {
    case DeviceKind::cpu:
      return planned_workspace(args);
    case DeviceKind::cuda:
      return cublaslt_workspace;
  }
  fail(ErrorCode::internal, "no such kind of device");
}

}  // namespace dstrain::ops
