#pragma once
#include "runtime/ops/matmul.h"

namespace dstrain::ops {

/// A product of the layer before a GELU, by the tanh approximation that GPT-2 uses ("gelu_new"):
/// gelu(x) = 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). product.out = a b + bias, which
/// backward needs, and active = gelu(product.out).
struct MatmulGeluArgs {
  MatmulArgs product;
  TensorView active;  ///< (M, N), of the dtype of product.out
};

/// Has the bits of matmul() and gelu_forward(). Asynchronous on `stream`.
void matmul_gelu_forward(const MatmulGeluArgs& args, StreamView stream);

/// A product of the layer behind a GELU, in backward: product.out = (a b) gelu'(input), where a is
/// the gradient of the layer's output and b its weight; and active = gelu(input) once more, bit for
/// bit, for the gradient of that weight.
struct MatmulGeluBackwardArgs {
  MatmulArgs product;
  TensorView input;   ///< (M, N), of the dtype of product.out, as the next one
  TensorView active;  ///< (M, N): written
};

/// Has the bits of matmul() and gelu_backward(). Asynchronous on `stream`.
void matmul_gelu_backward(const MatmulGeluBackwardArgs& args, StreamView stream);

}  // namespace dstrain::ops
