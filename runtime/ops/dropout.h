#pragma once
#include "runtime/device/stream.h"
#include "runtime/ops/dropout_site.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// output = [residual +] input times the mask of `site`; all (B, T, C), dense, all f32 or all bf16.
/// Forward drops a branch before it is added to the residual stream; backward is the same call on
/// the gradient, without a residual. The mask is drawn and never stored; an inactive site draws
/// nothing.
struct DropoutArgs {
  TensorView input;
  TensorView residual;  ///< or empty
  TensorView output;    ///< may be the input or the residual
  DropoutSite site;

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    visit(input);
    visit(residual);
    visit(output);
    visit(site.counter);
  }
};

/// Throws Error{internal} unless the tensors fit together.
void require_dropout(const DropoutArgs& args);

/// Asynchronous on `stream`.
void dropout(const DropoutArgs& args, StreamView stream);

}  // namespace dstrain::ops
