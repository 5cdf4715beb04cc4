#include "runtime/ops/classifier_chunks.h"

#include <algorithm>

#include "runtime/ops/matmul.h"

namespace dstrain::ops {

namespace {

constexpr Bytes logits_bytes = 512 * mebibyte;
constexpr std::int64_t tile_rows = 256;

/// Of a chunk.
std::int64_t chunk_rows(std::int64_t rows, std::int64_t stride) {
  const std::int64_t most =
      std::max<std::int64_t>(1, logits_bytes / (stride * size_of(DType::f32)));
  if (rows <= most) return rows;
  return most < tile_rows ? most : most / tile_rows * tile_rows;
}

/// The multiple of 64 that the large products take; all, where they are a multiple of 8 or few.
std::int64_t main_of(std::int64_t classes) {
  if (classes % 8 == 0 || classes < 64) return classes;
  return classes / 64 * 64;
}

}  // namespace

ClassifierChunks::ClassifierChunks(Arena& arena, const ClassifierSizes& sizes)
    : main_classes_(main_of(sizes.classes)) {
  const std::int64_t stride = round_up(sizes.classes, 8);
  const Shape shape{chunk_rows(sizes.rows, stride), stride};
  logits_ = arena.take(shape);
  gradient_ = sizes.dtype == DType::f32 ? logits_ : arena.take(shape, sizes.dtype);
  if (main_classes_ < sizes.classes && sizes.dtype != DType::f32) {
    sums_ = arena.take({rows(), sizes.channels});
  }
  losses_ = arena.take({sizes.rows});
  const TensorView input(sizes.dtype, {sizes.rows, sizes.channels});
  const TensorView weight(sizes.dtype, {sizes.classes, sizes.channels});
  const TensorView out(DType::f32, {sizes.rows, sizes.classes});
  products_ =
      arena.take({matmul_workspace({.a = input, .b = weight, .out = out, .b_transposed = true},
                                   DeviceKind::cuda)},
                 DType::u8);
}

}  // namespace dstrain::ops
