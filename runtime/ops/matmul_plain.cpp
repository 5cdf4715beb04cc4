// Plain loops for the thread sanitizer, which cannot see through oneDNN.
#include <vector>

#include "runtime/base/parallel_for.h"
#include "runtime/ops/checks.h"
#include "runtime/ops/matmul.h"
#include "runtime/ops/matmul_shape.h"
#include "runtime/ops/tile_product.h"

namespace dstrain::ops {
namespace {

void transpose(const TensorView& from, float* to) {
  const std::int64_t rows = from.shape()[0];
  const std::int64_t columns = from.shape()[1];
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      to[j * rows + i] = floats(from)[i * from.row_stride() + j];
    }
  }
}

void multiply(const MatmulArgs& args, const MatmulShape& shape) {
  std::vector<float> b_copy;
  if (shape.b_transposed) {
    b_copy.resize(static_cast<std::size_t>(shape.k * shape.n));
    transpose(args.b, b_copy.data());
  }
  parallel_for(shape.m, [&](std::int64_t i) {
    float* const out = floats(args.out) + i * shape.out_row;
    for (std::int64_t j = 0; j < shape.n; ++j) {
      const float start = shape.bias ? floats(args.bias)[j] : 0.0F;
      out[j] = shape.accumulate ? out[j] + start : start;
    }
    add_tile_product({.c = out,
                      .c_row = shape.out_row,
                      .a = floats(args.a) + i * (shape.a_transposed ? 1 : shape.a_row),
                      .a_row = 0,
                      .a_column = shape.a_transposed ? shape.a_row : 1,
                      .b = shape.b_transposed ? b_copy.data() : floats(args.b),
                      .b_row = shape.b_transposed ? shape.n : shape.b_row,
                      .m = 1,
                      .n = shape.n,
                      .k = shape.k});
  });
}

}  // namespace

struct Matmuls::Cache {};

Matmuls::Matmuls() = default;
Matmuls::~Matmuls() = default;

void Matmuls::run(const MatmulArgs& args, StreamView stream) {
  const MatmulShape shape = matmul_shape(args);
  stream.launch([args, shape] { multiply(args, shape); });
}

}  // namespace dstrain::ops
