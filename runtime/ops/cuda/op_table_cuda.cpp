#include "runtime/ops/cuda/cuda_ops.h"

namespace dstrain::ops {

const OpTable& cuda_op_table() {
#define DSTRAIN_CUDA_ENTRY(name, ...) .name = gpu::name,
  static constexpr OpTable table{DSTRAIN_FOR_EACH_OP(DSTRAIN_CUDA_ENTRY)};
#undef DSTRAIN_CUDA_ENTRY
  return table;
}

}  // namespace dstrain::ops
