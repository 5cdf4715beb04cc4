#include <algorithm>

#include "runtime/numeric/parallel_for.h"
#include "runtime/ops/blocks16.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/convert_kernel.h"
#include "runtime/ops/panels.h"
#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

constexpr std::int64_t block = 16;

/// The storage of a matrix, for kernels. "Rows" and "columns" are those of the matrix, not of its
/// storage.
struct Source {
  const std::byte* data;
  DType dtype;
  bool transposed;
  std::int64_t rows;
  std::int64_t columns;
};

Source source_of(const StoredMatrix& matrix) {
  const Shape& shape = matrix.view.shape();
  return {matrix.view.data(), matrix.view.dtype(), matrix.transposed,
          shape[matrix.transposed ? 1 : 0], shape[matrix.transposed ? 0 : 1]};
}

template <class Row>
DSTRAIN_INLINE void each_row(std::int64_t count, Row row) {
  if (count == block) {
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < block; ++i) row(i);
  } else {
    for (std::int64_t i = 0; i < count; ++i) row(i);
  }
}

/// Loads the block whose first element is (row, column), by rows; zero beyond the matrix.
DSTRAIN_INLINE void load_block(const Source& source,
                               std::int64_t row,
                               std::int64_t column,
                               Floats16* rows) {
  const std::int64_t stored_row = source.transposed ? column : row;
  const std::int64_t stored_column = source.transposed ? row : column;
  const std::int64_t stored_rows = source.transposed ? source.columns : source.rows;
  const std::int64_t stride = source.transposed ? source.rows : source.columns;
  const std::int64_t height = std::min(block, stored_rows - stored_row);
  const std::int64_t width = std::min(block, stride - stored_column);
  const Bytes size = size_of(source.dtype);
  const std::byte* const from = source.data + (stored_row * stride + stored_column) * size;
  const Bytes step = stride * size;
  if (height == block && width == block) {
    if (source.dtype == DType::f32) {
      each_row(block, [=](std::int64_t i) { load16(from + i * step, DType::f32, rows[i]); });
    } else if (source.dtype == DType::f16) {
      each_row(block, [=](std::int64_t i) { load16(from + i * step, DType::f16, rows[i]); });
    } else {
      each_row(block, [=](std::int64_t i) { load16(from + i * step, DType::bf16, rows[i]); });
    }
  } else {
    for (std::int64_t i = 0; i < block; ++i) {
      rows[i] = Floats16{};
      if (i < height && width > 0) load_some(from + i * step, source.dtype, width, rows[i]);
    }
  }
  if (source.transposed) transpose16(rows);
}

/// Stores rows [0, height) and columns [0, width) of a block to rows `step` bytes apart.
DSTRAIN_INLINE void store_block(const Floats16* rows,
                                std::int64_t height,
                                std::int64_t width,
                                DType dtype,
                                Bytes step,
                                std::byte* to) {
  if (width < block) {
    for (std::int64_t i = 0; i < height; ++i) store_some(rows[i], dtype, width, to + i * step);
  } else if (dtype == DType::f32) {
    each_row(height, [=](std::int64_t i) { store16(rows[i], DType::f32, to + i * step); });
  } else {
    each_row(height, [=](std::int64_t i) { store16(rows[i], DType::bf16, to + i * step); });
  }
}

/// Stores a block at a row of its panel and a column within the panel.
DSTRAIN_INLINE void store_in_panel(const Floats16* rows, DType dtype, std::byte* to) {
  if (dtype == DType::f32) {
    store_block(rows, block, block, DType::f32, panel_columns * 4, to);
    return;
  }
#pragma GCC unroll 8
  for (std::int64_t i = 0; i < block; i += 2) {
    Words16 even;
    Words16 odd;
    round_bits(rows[i], even);
    round_bits(rows[i + 1], odd);
    const Words16 pairs = (even >> 16) | odd;
    std::memcpy(to + i * panel_columns * 2, &pairs, 64);
  }
}

/// Blocks [rows.begin, rows.end) x [columns.begin, columns.end) of the panels.
struct BlockRange {
  std::int64_t begin;
  std::int64_t end;
};
DSTRAIN_SIMD_CLONES void pack_blocks(
    const Source& source, BlockRange rows, BlockRange columns, DType dtype, std::byte* panels) {
  const std::int64_t size = dtype == DType::f32 ? 4 : 2;
  const std::int64_t padded = round_up(source.rows, panel_row_padding(dtype));
  const std::int64_t pair = dtype == DType::f32 ? 1 : 2;
  Floats16 values[block];
  for (std::int64_t row = rows.begin * block; row < rows.end * block; row += block) {
    for (std::int64_t column = columns.begin * block; column < columns.end * block;
         column += block) {
      load_block(source, row, column, values);
      const std::int64_t panel = column / panel_columns * padded * panel_columns;
      const std::int64_t within = row * panel_columns + column % panel_columns * pair;
      store_in_panel(values, dtype, panels + (panel + within) * size);
    }
  }
}

/// Rows of a transposed matrix that are copied together: whole cache lines of its storage.
constexpr std::int64_t strip = 64;

/// Copies up to a strip of rows of a transposed matrix as dense rows.
DSTRAIN_SIMD_CLONES void transpose_strip(
    const Source& source, std::int64_t row, std::int64_t count, DType dtype, std::byte* target) {
  const Bytes size = size_of(dtype);
  Floats16 rows[block];
  for (std::int64_t column = 0; column < source.columns; column += block) {
    for (std::int64_t i = 0; i < count; i += block) {
      load_block(source, row + i, column, rows);
      store_block(rows, std::min(block, count - i), std::min(block, source.columns - column), dtype,
                  source.columns * size, target + (i * source.columns + column) * size);
    }
  }
}

}  // namespace

void pack_panels(const StoredMatrix& b, DType dtype, std::byte* panels) {
  const Source source = source_of(b);
  const std::int64_t rows = round_up(source.rows, panel_row_padding(dtype)) / block;
  const std::int64_t columns = round_up(source.columns, panel_columns) / block;
  // A task reads along the rows of the storage, so that the hardware can fetch ahead.
  if (source.transposed) {
    constexpr std::int64_t step = panel_columns / block;
    for_chunks(columns, step, [&](std::int64_t begin, std::int64_t end) {
      pack_blocks(source, {0, rows}, {begin, end}, dtype, panels);
    });
  } else {
    for_chunks(rows, 1, [&](std::int64_t begin, std::int64_t end) {
      pack_blocks(source, {begin, end}, {0, columns}, dtype, panels);
    });
  }
}

void convert_rows(const StoredMatrix& a, RowRange rows, DType dtype, std::byte* target) {
  const Source source = source_of(a);
  const Bytes row_bytes = source.columns * size_of(dtype);
  if (!a.transposed) {
    const Shape shape{rows.count, source.columns};
    convert_values(a.view.rows(rows.begin, rows.count), {target, dtype, shape});
    return;
  }
  for_chunks(rows.count, strip, [&](std::int64_t begin, std::int64_t end) {
    transpose_strip(source, rows.begin + begin, end - begin, dtype, target + begin * row_bytes);
  });
}

}  // namespace dstrain::ops
