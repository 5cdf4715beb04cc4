#pragma once
#include "runtime/ops/dropout.h"
#include "runtime/ops/layer_norm.h"

namespace dstrain::ops {

/// A branch joins the residual stream, and what reads the stream next normalises it.
struct ResidualNormArgs {
  DropoutArgs join;    ///< output = residual + input times the mask: the stream from here on
  LayerNormArgs norm;  ///< of join.output

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    join.for_each_tensor(visit);
    norm.for_each_tensor(visit);
  }
};

/// Has the bits of dropout() and layer_norm_forward(). Asynchronous on `stream`.
void residual_norm_forward(const ResidualNormArgs& args, StreamView stream);

/// The gradients of that, from those of the norm's output and of the stream behind it.
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

/// How the branch's gradient comes from the stream's, at an active site.
inline DropoutArgs branch_dropout(const ResidualNormBackwardArgs& args) {
  return {.input = args.norm.input_gradient,
          .residual = {},
          .output = args.branch_gradient,
          .site = args.site};
}

/// Has the bits of layer_norm_backward() and dropout(). Asynchronous on `stream`.
void residual_norm_backward(const ResidualNormBackwardArgs& args, StreamView stream);

}  // namespace dstrain::ops
