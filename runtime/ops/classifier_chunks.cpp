#include "runtime/ops/classifier_chunks.h"

#include <algorithm>

#include "runtime/ops/matmul.h"

namespace dstrain::ops {

ClassifierChunks::ClassifierChunks(Arena& arena, const ClassifierSizes& sizes) {
  constexpr Bytes logits_bytes = 256 * mebibyte;
  const std::int64_t stride = round_up(sizes.classes, 8);
  const std::int64_t most =
      std::max<std::int64_t>(1, logits_bytes / (stride * size_of(DType::f32)));
  const Shape shape{std::min(sizes.rows, most), stride};
  logits_ = arena.take(shape);
  gradient_ = sizes.dtype == DType::f32 ? logits_ : arena.take(shape, sizes.dtype);
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
