#include <cstring>

#include "runtime/ops/chunks.h"
#include "runtime/ops/copy_rows.h"

namespace dstrain::ops {

TensorView columns(const TensorView& matrix, std::int64_t first, std::int64_t count) {
  const Shape& shape = matrix.shape();
  DSTRAIN_CHECK(matrix.dense() && shape.rank() == 2 && first >= 0 && first + count <= shape[1],
                "{} columns from {} in {}", count, first, to_string(shape));
  std::byte* const begin =
      matrix.empty() ? nullptr : matrix.data() + first * size_of(matrix.dtype());
  return {begin, matrix.dtype(), {shape[0], count}, matrix.device(), shape[1]};
}

void copy_rows(const TensorView& source, const TensorView& target, StreamView stream) {
  const Shape& shape = source.shape();
  DSTRAIN_CHECK(shape == target.shape() && shape.rank() == 2 && source.dtype() == target.dtype(),
                "{} to {}", to_string(shape), to_string(target.shape()));
  stream.launch([source, target, rows = shape[0], columns = shape[1]] {
    const Bytes size = size_of(source.dtype());
    const std::int64_t rows_at_once = std::max<std::int64_t>(1, elementwise_chunk / columns);
    for_chunks(rows, rows_at_once, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        std::memcpy(target.data() + row * target.row_stride() * size,
                    source.data() + row * source.row_stride() * size,
                    static_cast<std::size_t>(columns * size));
      }
    });
  });
}

}  // namespace dstrain::ops
