#pragma once
#include "runtime/ops/dropout.h"
#include "runtime/ops/layer_norm.h"

namespace dstrain::ops {

/// Adds a branch to the residual stream, and normalizes it for its next reader.
struct ResidualNormArgs {
  DropoutArgs join;    ///< output = residual + input times the mask: the new stream
  LayerNormArgs norm;  ///< of join.output

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    join.for_each_tensor(visit);
    norm.for_each_tensor(visit);
  }
};

/// Gives the bits of dropout() and layer_norm_forward(). Asynchronous on `stream`.
void residual_norm_forward(const ResidualNormArgs& args, StreamView stream);

/// The gradients of that, from those of the norm's output and of the stream after it.
struct ResidualNormBackwardArgs {
  LayerNormBackwardArgs norm;  ///< input_gradient (B, T, C): that of the stream, old and new
  TensorView branch_gradient;  ///< (B, T, C): that of the branch before its dropout, input_gradient
                               ///< times the mask; not written when `site` is not active, for then
                               ///< it is input_gradient
  DropoutSite site;            ///< as in forward

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    norm.for_each_tensor(visit);
    visit(branch_gradient);
    visit(site.counter);
  }
};

/// Returns how the branch's gradient follows from the stream's, at an active site.
inline DropoutArgs branch_dropout(const ResidualNormBackwardArgs& args) {
  return {.input = args.norm.input_gradient,
          .residual = {},
          .output = args.branch_gradient,
          .site = args.site};
}

/// Gives the bits of layer_norm_backward() and dropout(). Asynchronous on `stream`.
void residual_norm_backward(const ResidualNormBackwardArgs& args, StreamView stream);

}  // namespace dstrain::ops
