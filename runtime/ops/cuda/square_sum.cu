#include <algorithm>

#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/packs.h"
#include "runtime/ops/cuda/square_digits.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/square_sum.h"

namespace dstrain::ops::gpu {
namespace {

template <class T>
struct Squares {
  const T* values;
  std::int64_t numel;
  SquareDigits* digits;
  bool aligned;
};

/// Two threads have a block of 64 elements: of its lanes, each has four neighbours.
constexpr int thread_lanes = square_lanes / 2;
constexpr std::int64_t pass_blocks = square_threads / 2;
constexpr int block_parts = static_cast<int>(square_block) / square_lanes;
/// As many blocks of threads as an H100 holds at once.
constexpr std::int64_t blocks_most = 132 * 4;

/// A thread's part of every eight elements of a block from `begin` on, zeros behind the end.
template <class T>
DSTRAIN_DEVICE void load_parts(const Squares<T>& args,
                               std::int64_t begin,
                               Pack<T, thread_lanes> (&parts)[block_parts]) {
  if (args.aligned && begin + square_block <= args.numel) {
#pragma unroll
    for (int i = 0; i < block_parts; ++i) {
      parts[i] = load<thread_lanes>(args.values, begin + i * square_lanes);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < block_parts; ++i) {
#pragma unroll
    for (int j = 0; j < thread_lanes; ++j) {
      const std::int64_t e = begin + i * square_lanes + j;
      parts[i].at[j] = e < args.numel ? args.values[e] : T{};
    }
  }
}

template <class T>
DSTRAIN_DEVICE double sum_of_block(const Pack<T, thread_lanes> (&parts)[block_parts]) {
  double lane[thread_lanes];
#pragma unroll
  for (int j = 0; j < thread_lanes; ++j) {
    LaneSum sum;
#pragma unroll
    for (int i = 0; i < block_parts; ++i) sum.add(to_float(parts[i].at[j]));
    lane[j] = sum.with_other_half(1);
  }
  return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

template <class T>
DSTRAIN_KERNEL(square_threads)
squares_kernel(DSTRAIN_ARGUMENT Squares<T> args) {
  auto& own = shared<SquareDigits>();
  clear(own);
  sync();
  const std::int64_t blocks = divide_up(args.numel, square_block);
  const std::int64_t lane = thread() % 2 * thread_lanes;
  NearDigits digits;
  for (std::int64_t first = block_x() * pass_blocks; first < blocks;
       first += blocks_x() * pass_blocks) {
    Pack<T, thread_lanes> parts[block_parts];
    load_parts(args, (first + thread() / 2) * square_block + lane, parts);
    const double of_block = sum_of_block(parts);
    if (lane == 0) digits.add(of_block, own);
  }
  digits.move_to(own);
  sync();
  add(*args.digits, own);
}

struct Fold {
  SquareDigits* digits;
  ExactSum* sum;
};

/// Adds the digits to the sum, and clears them. One block.
DSTRAIN_KERNEL(square_threads)
fold_kernel(DSTRAIN_ARGUMENT Fold args) {
  struct Shared {
    SquareDigits digits;
    ExactSum sum;
  };
  auto& s = shared<Shared>();
  copy_words(*args.digits, s.digits);
  copy_words(*args.sum, s.sum);
  clear(*args.digits);
  sync();
  if (thread() == 0) s.sum.add(s.digits);
  sync();
  copy_words(s.sum, *args.sum);
}

}  // namespace

void add_squares(const TensorView& values, const TensorView& sum, StreamView stream) {
  SquareDigits* const digits = &op_state(stream).words().squares[0];
  const std::int64_t blocks = divide_up(divide_up(values.numel(), square_block), pass_blocks);
  const Grid grid{.x = std::min(blocks, blocks_most),
                  .threads = square_threads,
                  .shared_bytes = sizeof(SquareDigits)};
  with_element_type(values.dtype(), [&](auto element) {
    using T = decltype(element);
    const T* const first = elements<T>(values);
    launch("add_squares", squares_kernel<T>, grid,
           Squares<T>{first, values.numel(), digits, are_aligned(first)}, stream);
  });
  const Grid one{.threads = square_threads,
                 .shared_bytes = sizeof(SquareDigits) + sizeof(ExactSum)};
  launch("add_squares", fold_kernel, one, Fold{digits, elements<ExactSum>(sum)}, stream);
}

}  // namespace dstrain::ops::gpu
