#include "runtime/ops/activation.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {
namespace {

/// Requires that both have the same type and size.
void require_alike(const TensorView& input, const TensorView& other, const char* what) {
  require_strided(other, input.dtype(), rows_of(input), columns_of(input), what);
}

void require_input(const TensorView& input) {
  require_strided(input, element_dtype(input, "input"), rows_of(input), columns_of(input), "input");
}

}  // namespace

void activation_forward(const ActivationArgs& args, StreamView stream) {
  require_input(args.input);
  if (!args.factor.empty()) require_alike(args.input, args.factor, "factor");
  require_alike(args.input, args.output, "output");
  op_table(stream).activation_forward(args, stream);
}

void activation_backward(const ActivationBackwardArgs& args, StreamView stream) {
  require_input(args.input);
  require_alike(args.input, args.output_gradient, "output_gradient");
  require_alike(args.input, args.input_gradient, "input_gradient");
  DSTRAIN_CHECK(args.factor.empty() == args.factor_gradient.empty(), "a factor has a gradient");
  if (!args.factor.empty()) {
    require_alike(args.input, args.factor, "factor");
    require_alike(args.input, args.factor_gradient, "factor_gradient");
  }
  if (!args.output.empty()) require_alike(args.input, args.output, "output");
  op_table(stream).activation_backward(args, stream);
}

}  // namespace dstrain::ops
