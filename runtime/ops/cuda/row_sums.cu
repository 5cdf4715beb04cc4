#include "runtime/ops/cuda/launch.h"
#include "runtime/ops/cuda/row_sums.h"
#include "runtime/ops/elements.h"

namespace dstrain::ops::gpu {
namespace {

/// What a block of threads takes: few columns, so that there are many blocks, yet 32 bytes of a
/// row at a time.
constexpr int columns_at_once = 16;
constexpr int rows_at_once = 32;
constexpr int sum_threads = columns_at_once * rows_at_once;

struct Parts {
  float plain[rows_at_once][columns_at_once];
  float weighted[rows_at_once][columns_at_once];
};

DSTRAIN_DEVICE void store(const float (*parts)[columns_at_once],
                          int column,
                          const RowSumTarget& target,
                          std::int64_t at) {
  if (target.values == nullptr) return;
  float sum = 0;
  for (int row = 0; row < rows_at_once; ++row) sum += parts[row][column];
  target.values[at] = target.accumulate ? target.values[at] + sum : sum;
}

template <class T>
DSTRAIN_KERNEL(sum_threads)
sum_kernel(DSTRAIN_ARGUMENT RowSums<T> args) {
  auto& parts = shared<Parts>();
  const int column = thread() % columns_at_once;
  const int first_row = thread() / columns_at_once;
  const std::int64_t at = block_x() * columns_at_once + column;
  float plain = 0;
  float weighted = 0;
  for (std::int64_t row = first_row; at < args.columns && row < args.rows; row += rows_at_once) {
    const std::int64_t e = row * args.columns + at;
    const float value = to_float(args.values[e]);
    plain += value;
    if (args.input == nullptr) continue;
    const float mean = args.mean == nullptr ? 0.0F : args.mean[row];
    weighted += value * ((to_float(args.input[e]) - mean) * args.rstd[row]);
  }
  parts.plain[first_row][column] = plain;
  parts.weighted[first_row][column] = weighted;
  sync();
  if (first_row != 0 || at >= args.columns) return;
  store(parts.plain, column, args.plain, at);
  if (args.input != nullptr) store(parts.weighted, column, args.weighted, at);
}

}  // namespace

template <class T>
void add_up_rows(const char* op, const RowSums<T>& sums, StreamView stream) {
  launch(op, sum_kernel<T>,
         {.x = divide_up(sums.columns, columns_at_once),
          .threads = sum_threads,
          .shared_bytes = sizeof(Parts)},
         sums, stream);
}

template void add_up_rows(const char*, const RowSums<float>&, StreamView);
template void add_up_rows(const char*, const RowSums<BFloat16>&, StreamView);
template void add_up_rows(const char*, const RowSums<Float16>&, StreamView);

}  // namespace dstrain::ops::gpu
