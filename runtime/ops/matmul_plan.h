#pragma once
#include <cstdint>

#include "runtime/ops/matmul.h"
#include "runtime/ops/matmul_cpu.h"

namespace dstrain::ops {

/// How a product is cut so that converted data stays in cache, and its workspace. Operands are
/// converted if their dtype is not the compute dtype; the right one is packed into panels.
struct MatmulPlan {
  std::int64_t k_piece;  ///< a sum over many rows (a transposed a) runs in pieces
  std::int64_t m_piece;  ///< rows of a that are copied, or of out that are rounded, at a time
  Bytes panels;          ///< of the workspace, before the others. 0: b is read in place
  Bytes a_rows;
  Bytes out_rows;
  Bytes bias;
  [[nodiscard]] Bytes workspace() const { return panels + a_rows + out_rows + bias; }
};

/// `compute`: the dtype of the operands in the product.
MatmulPlan plan_matmul(const MatmulArgs& args, DType compute);

/// Returns the dtype that a product computes in.
DType matmul_compute(const MatmulArgs& args, cpu::Bf16Products bf16_products);

}  // namespace dstrain::ops
