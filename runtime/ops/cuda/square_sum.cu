#include <algorithm>
#include <span>

#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/packs.h"
#include "runtime/ops/cuda/square_digits.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/square_sum.h"

namespace dstrain::ops::gpu {
namespace {

/// The most tensors per launch, which keeps its arguments within 2 KiB.
constexpr int tensors_most = 64;

template <class T>
struct Squares {
  struct Tensor {
    const T* values;
    std::int64_t numel;
    std::int64_t behind;  ///< passes of this and all earlier tensors
    bool aligned;
  };
  Tensor tensors[tensors_most];
  SquareDigits* digits;
  std::int64_t passes;  ///< of all tensors
};

/// Two threads share a block of 64 elements; each takes four adjacent lanes.
constexpr int thread_lanes = square_lanes / 2;
constexpr std::int64_t pass_blocks = square_threads / 2;
constexpr int block_parts = static_cast<int>(square_block) / square_lanes;
/// The thread blocks that an H100 holds at once.
constexpr std::int64_t blocks_most = 132 * 4;

/// Loads a thread's part of every eight elements of a block from `begin` on, zero-padded.
template <class T>
DSTRAIN_DEVICE void load_parts(const typename Squares<T>::Tensor& args,
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

/// A pass covers pass_blocks blocks of one tensor.
template <class T>
DSTRAIN_KERNEL(square_threads)
squares_kernel(DSTRAIN_ARGUMENT Squares<T> args) {
  auto& own = shared<SquareDigits>();
  clear(own);
  sync();
  const std::int64_t lane = thread() % 2 * thread_lanes;
  NearDigits digits;
  int at = 0;
  std::int64_t before = 0;  // passes of the tensors before that one
  for (std::int64_t pass = block_x(); pass < args.passes; pass += blocks_x()) {
    while (pass >= args.tensors[at].behind) before = args.tensors[at++].behind;
    const std::int64_t first = (pass - before) * pass_blocks;
    Pack<T, thread_lanes> parts[block_parts];
    load_parts<T>(args.tensors[at], (first + thread() / 2) * square_block + lane, parts);
    const double of_block = sum_of_block(parts);
    if (lane == 0) digits.add(of_block, own);
  }
  digits.move_to(own);
  sync();
  add(*args.digits, own);
}

/// `values`: tensors of one dtype, as many as a launch takes.
template <class T>
void launch_squares(std::span<const TensorView> values, SquareDigits* digits, StreamView stream) {
  Squares<T> args{.tensors = {}, .digits = digits, .passes = 0};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T* const first = elements<T>(values[i]);
    args.passes += divide_up(values[i].numel(), square_block * pass_blocks);
    args.tensors[i] = {first, values[i].numel(), args.passes, are_aligned(first)};
  }
  const Grid grid{.x = std::min(args.passes, blocks_most),
                  .threads = square_threads,
                  .shared_bytes = sizeof(SquareDigits)};
  launch("add_squares", squares_kernel<T>, grid, args, stream);
}

struct Fold {
  SquareDigits* digits;
  ExactSum* sum;
};

/// Adds the digits to the sum and clears them. One block.
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

void add_squares(const AddSquaresArgs& args, StreamView stream) {
  SquareDigits* const digits = &op_state(stream).words().squares[0];
  for (std::span<const TensorView> left(args.values); !left.empty();) {
    const DType dtype = left.front().dtype();
    const std::span<const TensorView> most =
        left.first(std::min<std::size_t>(left.size(), tensors_most));
    const auto other =
        std::ranges::find_if(most, [dtype](const TensorView& one) { return one.dtype() != dtype; });
    const auto count = static_cast<std::size_t>(other - most.begin());
    with_element_type(dtype, [&](auto element) {
      launch_squares<decltype(element)>(left.first(count), digits, stream);
    });
    left = left.subspan(count);
  }
  const Grid one{.threads = square_threads,
                 .shared_bytes = sizeof(SquareDigits) + sizeof(ExactSum)};
  launch("add_squares", fold_kernel, one, Fold{digits, elements<ExactSum>(args.sum)}, stream);
}

}  // namespace dstrain::ops::gpu
