#pragma once
#include <string>
#include <vector>

#include "runtime/model/model.h"
#include "runtime/ops/matmul.h"

namespace dstrain::bench {

/// One kind of matrix product of a training step.
struct GemmShape {
  std::string name;  ///< "mlp.c_fc dX"
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  double times = 0;  ///< in a step; not whole where a step's rows are not
  bool a_transposed = false;
  bool b_transposed = false;
  bool bias = false;
  bool f32_out = false;  ///< in either precision: logits and gradients of weights
  bool accumulate = false;

  [[nodiscard]] double flops() const {
    return 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

/// The products of forward and backward with weights: those of attention between activations are
/// kernels of their own. `rows`: tokens of a micro batch.
std::vector<GemmShape> gemm_shapes(const model::Model& model, std::int64_t rows);

/// The product without its memory: views of the right shape and type that point nowhere.
ops::MatmulArgs product_of(const GemmShape& shape, DType dtype);

}  // namespace dstrain::bench
