// Plain loops for the thread sanitizer, which cannot see through oneDNN.
#include <algorithm>
#include <vector>

#include "runtime/device/cpu_stream_access.h"
#include "runtime/numeric/parallel_for.h"
#include "runtime/ops/convert_kernel.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/matmul.h"
#include "runtime/ops/matmul_plan.h"
#include "runtime/ops/panels.h"
#include "runtime/ops/tile_product.h"

namespace dstrain::ops::cpu {
namespace {

/// Returns a matrix widened to f32, in row order, whether it is stored transposed or not.
std::vector<float> rows_of(const TensorView& view, bool transposed) {
  const Shape& shape = view.shape();
  const std::int64_t rows = shape[transposed ? 1 : 0];
  std::vector<float> values(static_cast<std::size_t>(view.numel()));
  convert_rows({host_access(view), transposed}, {0, rows}, DType::f32,
               reinterpret_cast<std::byte*>(values.data()));
  return values;
}

void multiply(const MatmulArgs& args, const MatmulShape& shape) {
  const std::int64_t n = shape.n;  // not bound: lambdas of clang take no bindings
  const std::int64_t k = shape.k;
  const std::vector<float> a = rows_of(args.a, args.a_transposed);
  const std::vector<float> b = rows_of(args.b, args.b_transposed);
  std::vector<float> start(static_cast<std::size_t>(n), 0.0F);
  if (!args.bias.empty()) convert_values(host_access(args.bias), {start, {n}});
  std::vector<float> sums(static_cast<std::size_t>(shape.m * n));
  parallel_for(shape.m, [&](std::int64_t i) {
    float* const out = sums.data() + i * n;
    std::copy(start.begin(), start.end(), out);
    if (args.accumulate) {
      for (std::int64_t j = 0; j < n; ++j) out[j] += floats(args.out)[i * n + j];
    }
    multiply_tile({.c = out,
                   .c_row = n,
                   .a = a.data() + i * k,
                   .a_row = 0,
                   .a_column = 1,
                   .b = b.data(),
                   .b_row = n,
                   .m = 1,
                   .n = n,
                   .k = k},
                  Into::add);
  });
  convert_values({sums, args.out.shape()}, host_access(args.out));
}

}  // namespace

Bf16Products preferred_bf16_products() {
  return Bf16Products::widened;
}

void use_bf16_products(Bf16Products /*products*/, StreamView /*stream*/) {}

std::size_t prepared_products(StreamView /*stream*/) {
  return 0;
}

void matmul(const MatmulArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args, shape = matmul_shape(args)] { multiply(args, shape); });
}

}  // namespace dstrain::ops::cpu
