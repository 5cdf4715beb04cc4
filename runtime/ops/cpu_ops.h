#pragma once
#include "runtime/ops/op_table.h"

/// The CPU's entries of the op table.
namespace dstrain::ops::cpu {

DSTRAIN_FOR_EACH_OP(DSTRAIN_OP_DECLARATION)

}  // namespace dstrain::ops::cpu
