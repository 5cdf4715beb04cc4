#include <algorithm>

#include "runtime/ops/cuda/launch.h"
#include "runtime/ops/cuda/op_state.h"
#include "runtime/ops/cuda/row_parts.h"
#include "runtime/ops/cuda/row_sums.h"
#include "runtime/ops/elements.h"

namespace dstrain::ops::gpu {
namespace {

constexpr int sum_warps = 12;
constexpr int sum_threads = sum_warps * warp_threads;

/// A block sums a slab of rows in the columns of a tile: warps divide the rows, and threads the
/// columns.
template <class T>
constexpr int tile_columns = warp_threads* pack_numel<T>;

template <class T>
struct Slabs {
  RowSums<T> matrix;
  std::int64_t slab_rows;
  std::int64_t slabs;
  float* partial;           ///< (tiles, sums, slabs, tile_columns)
  std::uint32_t* arrivals;  ///< (tiles)
  bool aligned;             ///< see for_parts()
};

/// Column sums: plain and, if the matrix has an input, weighted ones.
template <int sums, int columns>
struct ColumnSums {
  Pack<float, columns> of[sums];
};

/// Adds `count` rows, every sum_warps-th from `row` on, to the column sums of `part`. All are
/// loaded before the first is added.
template <int count, int sums, class T, class Part>
DSTRAIN_DEVICE void add_some_rows(const RowSums<T>& matrix,
                                  const Part& part,
                                  std::int64_t row,
                                  ColumnSums<sums, pack_numel<T>>& to) {
  Pack<T, pack_numel<T>> values[count];
  Pack<T, pack_numel<T>> inputs[count];
  float mean[count];
  float rstd[count];
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const std::int64_t own = row + i * sum_warps;
    values[i] = part.load(matrix.values + own * matrix.columns);
    if constexpr (sums == 2) {
      inputs[i] = part.load(matrix.input + own * matrix.columns);
      mean[i] = matrix.mean == nullptr ? 0.0F : matrix.mean[own];
      rstd[i] = matrix.rstd[own];
    }
  }
#pragma unroll
  for (int i = 0; i < count; ++i) {
    part.each([&](int j) {
      const float value = to_float(values[i].at[j]);
      to.of[0].at[j] += value;
      if constexpr (sums == 2) {
        to.of[1].at[j] += value * ((to_float(inputs[i].at[j]) - mean[i]) * rstd[i]);
      }
    });
  }
}

/// Adds every sum_warps-th row of [first, end), in order.
template <int sums, class T, class Part>
DSTRAIN_DEVICE void add_rows(const RowSums<T>& matrix,
                             const Part& part,
                             std::int64_t first,
                             std::int64_t end,
                             ColumnSums<sums, pack_numel<T>>& to) {
  constexpr int at_once = 4 / sums;
  std::int64_t row = first;
  for (; row + (at_once - 1) * sum_warps < end; row += at_once * sum_warps) {
    add_some_rows<at_once>(matrix, part, row, to);
  }
  for (; row < end; row += sum_warps) add_some_rows<1>(matrix, part, row, to);
}

template <class T, int sums>
struct Shared {
  Pack<float, pack_numel<T>> of_warp[sums][sum_warps][warp_threads];
};

/// Adds the warps' sums of each column of the tile, and calls `body(which, column, sum)`.
template <class T, int sums, class Body>
DSTRAIN_DEVICE void add_warps(const ColumnSums<sums, pack_numel<T>>& own, const Body& body) {
  auto& s = shared<Shared<T, sums>>();
  constexpr int numel = pack_numel<T>;
  for (int which = 0; which < sums; ++which) {
    s.of_warp[which][thread() / warp_threads][thread() % warp_threads] = own.of[which];
  }
  sync();
  for (int i = thread(); i < sums * tile_columns<T>; i += sum_threads) {
    const int which = i / tile_columns<T>;
    const int column = i % tile_columns<T>;
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < sum_warps; ++warp) {
      sum += s.of_warp[which][warp][column / numel].at[column % numel];
    }
    body(which, column, sum);
  }
}

template <class T>
DSTRAIN_DEVICE void put(const RowSums<T>& matrix, int which, int in_tile, float sum) {
  const RowSumTarget& target = which == 0 ? matrix.plain : matrix.weighted;
  const std::int64_t column = block_x() * tile_columns<T> + in_tile;
  if (target.values == nullptr || column >= matrix.columns) return;
  target.values[column] = target.accumulate ? target.values[column] + sum : sum;
}

/// The last block of a tile to finish adds the slabs' sums, in the way that warps add rows.
template <class T, int sums>
DSTRAIN_KERNEL_AT_ONCE(sum_threads, 2)
sum_kernel(DSTRAIN_ARGUMENT Slabs<T> args) {
  constexpr int numel = pack_numel<T>;
  const RowSums<T>& matrix = args.matrix;
  const int warp = thread() / warp_threads;
  const int in_tile = thread() % warp_threads * numel;
  const std::int64_t column = block_x() * tile_columns<T> + in_tile;
  const std::int64_t left = matrix.columns - column;
  const std::int64_t first = block_y() * args.slab_rows;
  const std::int64_t end = std::min(first + args.slab_rows, matrix.rows);
  ColumnSums<sums, numel> own{};
  if (left >= numel && args.aligned) {
    add_rows<sums>(matrix, WholePart<numel>{column}, first + warp, end, own);
  } else if (left > 0) {
    const PartInSingles<numel> part{column, left < numel ? static_cast<int>(left) : numel};
    add_rows<sums>(matrix, part, first + warp, end, own);
  }
  if (args.slabs == 1) {
    return add_warps<T, sums>(
        own, [&](int which, int of_tile, float sum) { put(matrix, which, of_tile, sum); });
  }
  const std::int64_t sum_numel = args.slabs * tile_columns<T>;
  float* const partial = args.partial + block_x() * sums * sum_numel;
  add_warps<T, sums>(own, [&](int which, int of_tile, float sum) {
    partial[which * sum_numel + block_y() * tile_columns<T> + of_tile] = sum;
  });
  if (!is_last_block(args.arrivals[block_x()], static_cast<std::uint32_t>(args.slabs))) return;
  ColumnSums<sums, numel> all{};
#pragma unroll 4
  for (std::int64_t slab = warp; slab < args.slabs; slab += sum_warps) {
#pragma unroll
    for (int which = 0; which < sums; ++which) {
      const std::int64_t from = which * sum_numel + slab * tile_columns<T> + in_tile;
      const auto of_slab = load<numel>(static_cast<const float*>(partial), from);
#pragma unroll
      for (int j = 0; j < numel; ++j) all.of[which].at[j] += of_slab.at[j];
    }
  }
  add_warps<T, sums>(all,
                     [&](int which, int of_tile, float sum) { put(matrix, which, of_tile, sum); });
}

template <int sums, class T>
void run(const char* op, const Slabs<T>& slabs, StreamView stream) {
  launch(op, sum_kernel<T, sums>,
         {.x = divide_up(slabs.matrix.columns, tile_columns<T>),
          .y = slabs.slabs,
          .threads = sum_threads,
          .shared_bytes = sizeof(Shared<T, sums>)},
         slabs, stream);
}

}  // namespace

template <class T>
void add_up_rows(const char* op, const RowSums<T>& sums, StreamView stream) {
  static_assert(tile_columns<T> <= row_sum_columns);
  const std::int64_t tiles = std::max<std::int64_t>(divide_up(sums.columns, tile_columns<T>), 1);
  const std::int64_t slabs_most = std::max<std::int64_t>(row_sum_blocks / tiles, 1);
  const std::int64_t rows = std::max<std::int64_t>(divide_up(sums.rows, slabs_most), 1);
  const std::int64_t slab_rows = divide_up(rows, sum_warps) * sum_warps;
  DeviceWords& words = op_state(stream).words();
  const Slabs<T> slabs{
      .matrix = sums,
      .slab_rows = slab_rows,
      .slabs = std::max<std::int64_t>(divide_up(sums.rows, slab_rows), 1),
      .partial = &words.row_sums[0],
      .arrivals = &words.arrivals[0],
      .aligned = sums.columns % pack_numel<T> == 0 && are_aligned(sums.values, sums.input)};
  if (sums.input == nullptr) {
    run<1>(op, slabs, stream);
  } else {
    run<2>(op, slabs, stream);
  }
}

template void add_up_rows(const char*, const RowSums<float>&, StreamView);
template void add_up_rows(const char*, const RowSums<BFloat16>&, StreamView);
template void add_up_rows(const char*, const RowSums<Float16>&, StreamView);

}  // namespace dstrain::ops::gpu
