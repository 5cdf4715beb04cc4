#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/dropout_mask.h"
#include "runtime/ops/cuda/elementwise.h"
#include "runtime/ops/dropout.h"
#include "runtime/ops/elements.h"

namespace dstrain::ops::gpu {
namespace {

/// Index i stands for the four elements of one dropout draw.
template <class T>
struct Masked {
  const T* input;
  const T* residual;  ///< may be null
  T* output;
  DropoutMask mask;
  std::int64_t sequence_numel;
  std::int64_t sequence_draws;
  DSTRAIN_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t sequence = i / sequence_draws;
    const std::int64_t draw = i % sequence_draws;
    const auto lane = static_cast<int>(draw % 16);
    const auto four = mask.draw(sequence, draw / 16, lane);
    const std::int64_t first = draw / 16 * 64 + lane;
    for (int j = 0; j < 4; ++j) {
      const std::int64_t in_sequence = first + 16 * j;
      if (in_sequence >= sequence_numel) return;
      const std::int64_t e = sequence * sequence_numel + in_sequence;
      const float value = to_float(input[e]) * four.multiplier[j];
      output[e] = from_float<T>(residual == nullptr ? value : to_float(residual[e]) + value);
    }
  }
};

template <class T>
struct Plain {
  static constexpr int numel = pack_numel<T>;
  const T* input;
  const T* residual;  ///< may be null
  T* output;
  template <int n>
  DSTRAIN_DEVICE void apply(std::int64_t i) const {
    auto value = load<n>(input, i);
    if (residual != nullptr) {
      const auto before = load<n>(residual, i);
#pragma unroll
      for (int j = 0; j < n; ++j) {
        value.at[j] = from_float<T>(to_float(before.at[j]) + to_float(value.at[j]));
      }
    }
    store(value, output, i);
  }
};

template <class T>
void run(const DropoutArgs& args, StreamView stream) {
  const Shape& shape = args.input.shape();
  const T* const input = elements<T>(args.input);
  const T* const residual = elements<T>(args.residual);
  T* const output = elements<T>(args.output);
  if (!args.site.active()) {
    return for_packs("dropout", args.input.numel(), are_aligned(input, residual, output),
                     Plain<T>{input, residual, output}, stream);
  }
  const std::int64_t numel = shape[1] * shape[2];
  const std::int64_t draws = divide_up(numel, 64) * 16;
  for_elements("dropout", shape[0] * draws,
               Masked<T>{input, residual, output, DropoutMask(args.site), numel, draws}, stream);
}

}  // namespace

void dropout(const DropoutArgs& args, StreamView stream) {
  with_element_type(args.input.dtype(),
                    [&](auto element) { run<decltype(element)>(args, stream); });
}

}  // namespace dstrain::ops::gpu
