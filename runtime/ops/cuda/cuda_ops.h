#pragma once
#include "runtime/ops/op_table.h"

/// The op table's entries for GPUs.
namespace dstrain::ops::gpu {

DSTRAIN_FOR_EACH_OP(DSTRAIN_OP_DECLARATION)

/// Whether the build has kernels for the calling thread's GPU.
bool has_kernel_code();

}  // namespace dstrain::ops::gpu

namespace dstrain::ops {

const OpTable& cuda_op_table();

}  // namespace dstrain::ops
