#include "runtime/ops/classifier_chunks.h"

#include <algorithm>

#include "runtime/ops/matmul.h"

namespace dstrain::ops {

namespace {

constexpr Bytes logits_bytes = 512 * mebibyte;
constexpr std::int64_t tile_rows = 256;

/// Returns the rows of a chunk of at most `bytes_most` bytes, at least one row.
std::int64_t chunk_rows(std::int64_t rows, Bytes row_bytes, Bytes bytes_most) {
  const std::int64_t most = std::max<std::int64_t>(1, bytes_most / row_bytes);
  if (rows <= most) return rows;
  return most < tile_rows ? most : most / tile_rows * tile_rows;
}

/// Returns the classes of the large products: a multiple of 64, or all if they are a multiple of 8
/// or few.
std::int64_t main_of(std::int64_t classes) {
  if (classes % 8 == 0 || classes < 64) return classes;
  return classes / 64 * 64;
}

}  // namespace

ClassifierChunks::ClassifierChunks(Arena& arena, const ClassifierSizes& sizes, Purpose purpose)
    : main_classes_(main_of(sizes.classes)) {
  const std::int64_t stride = round_up(sizes.classes, 8);
  const Bytes row_bytes = stride * size_of(sizes.dtype);
  const std::int64_t loss_rows = chunk_rows(sizes.rows, row_bytes, logits_bytes);
  logits_ =
      purpose == Purpose::loss
          ? arena.take({loss_rows, stride}, sizes.dtype)
          : arena.take({chunk_rows(sizes.rows, stride * size_of(DType::f32), loss_rows * row_bytes),
                        stride});
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
