#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/elementwise.h"
#include "runtime/ops/cuda/op_state.h"
#include "runtime/ops/cuda/product_plan.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/matmul.h"

namespace dstrain::ops::gpu {
namespace {

/// Adds a row to each row of a matrix.
template <class Bias, class T>
struct AddBias {
  const Bias* bias;
  T* out;
  std::int64_t columns;
  std::int64_t stride;  ///< row stride of `out`
  DSTRAIN_DEVICE void operator()(std::int64_t i) const {
    T& sum = out[i / columns * stride + i % columns];
    sum = from_float<T>(to_float(sum) + to_float(bias[i % columns]));
  }
};

void add_bias(const MatmulArgs& args, StreamView stream) {
  with_element_type(args.bias.dtype(), [&](auto of_bias) {
    with_element_type(args.out.dtype(), [&](auto element) {
      using Bias = decltype(of_bias);
      using T = decltype(element);
      for_elements("matmul", args.out.numel(),
                   AddBias<Bias, T>{elements<Bias>(args.bias), elements<T>(args.out),
                                    args.out.shape()[1], args.out.row_stride()},
                   stream);
    });
  });
}

/// Whether cuBLASLt adds the bias. The bias must have the product's dtype, and 16-byte alignment,
/// which ProductPlan assumes.
bool is_fused(const MatmulArgs& args) {
  return !args.bias.empty() && args.bias.dtype() == args.out.dtype() &&
         args.a.dtype() == args.out.dtype() && are_aligned(elements<std::byte>(args.bias));
}

void require_supported(const MatmulArgs& args) {
  const DType operands = args.a.dtype();
  DSTRAIN_CHECK(operands == args.b.dtype(), "GPUs multiply no {} by {}", name_of(operands),
                name_of(args.b.dtype()));
  DSTRAIN_CHECK(args.out.dtype() == operands || args.out.dtype() == DType::f32,
                "GPUs make no {} of {}", name_of(args.out.dtype()), name_of(operands));
  DSTRAIN_CHECK(
      args.bias.empty() || args.bias.dtype() == args.out.dtype() || args.out.dtype() == DType::f32,
      "GPUs add no bias of {} to {}", name_of(args.bias.dtype()), name_of(args.out.dtype()));
}

}  // namespace

ProductMatrix product_matrix(const TensorView& view) {
  return {elements<std::byte>(view), view.dtype(), view.row_stride()};
}

void use_tf32(StreamView stream) {
  op_state(stream).plans().tf32 = true;
}

void multiply(const Product& given, const TensorView& workspace, StreamView view) {
  cuda::CudaStream& stream = cuda::cuda_stream(view);
  if (stream.drops()) return;
  OpState& state = op_state(view);
  Product product = given;
  product.tf32 = state.plans().tf32 && product.a.dtype == DType::f32;
  ProductPlans& plans = state.plans();
  const ProductKey key = key_of(product);
  auto found = plans.by_key.find(key);
  if (found == plans.by_key.end()) {
    found = plans.by_key.emplace(key, ProductPlan(state.cublas(), product)).first;
    const auto chosen = plans.chosen.find(key);
    if (chosen != plans.chosen.end()) {
      found->second.take(state.cublas(), product, chosen->second);
    }
  }
  auto address = reinterpret_cast<std::uintptr_t>(elements<std::byte>(workspace));
  address = (address + 255) / 256 * 256;
  found->second.run(state.cublas(), product, reinterpret_cast<void*>(address), stream.handle());
}

void matmul(const MatmulArgs& args, StreamView stream) {
  require_supported(args);
  const bool fused = is_fused(args);
  multiply({.op = "matmul",
            .a = product_matrix(args.a),
            .b = product_matrix(args.b),
            .out = product_matrix(args.out),
            .shape = matmul_shape(args),
            .bias = fused ? elements<std::byte>(args.bias) : nullptr,
            .a_transposed = args.a_transposed,
            .b_transposed = args.b_transposed,
            .accumulate = args.accumulate},
           args.workspace, stream);
  if (!args.bias.empty() && !fused) add_bias(args, stream);
}

}  // namespace dstrain::ops::gpu
