#include <algorithm>

#include "runtime/ops/cuda/cuda_ops.h"
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
};

template <class T>
DSTRAIN_KERNEL(square_threads)
squares_kernel(DSTRAIN_ARGUMENT Squares<T> args) {
  auto& own = shared<SquareDigits>();
  clear(own);
  sync();
  const std::int64_t blocks = divide_up(args.numel, square_block);
  const std::int64_t lane = thread() % square_lanes;
  for (std::int64_t first = block_x() * square_blocks; first < blocks;
       first += blocks_x() * square_blocks) {
    const std::int64_t begin = (first + thread() / square_lanes) * square_block + lane;
    LaneSum sum;
    for (std::int64_t e = begin; e < begin + square_block && e < args.numel; e += square_lanes) {
      sum.add(to_float(args.values[e]));
    }
    const double of_block = sum.of_block();
    if (lane == 0) add(own, of_block);
  }
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
  const std::int64_t blocks = divide_up(divide_up(values.numel(), square_block), square_blocks);
  const Grid grid{.x = std::min<std::int64_t>(blocks, square_grid),
                  .threads = square_threads,
                  .shared_bytes = sizeof(SquareDigits)};
  with_element_type(values.dtype(), [&](auto element) {
    using T = decltype(element);
    launch("add_squares", squares_kernel<T>, grid,
           Squares<T>{elements<T>(values), values.numel(), digits}, stream);
  });
  const Grid one{.threads = square_threads,
                 .shared_bytes = sizeof(SquareDigits) + sizeof(ExactSum)};
  launch("add_squares", fold_kernel, one, Fold{digits, elements<ExactSum>(sum)}, stream);
}

}  // namespace dstrain::ops::gpu
