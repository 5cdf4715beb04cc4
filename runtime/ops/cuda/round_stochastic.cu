#include "runtime/numeric/philox.h"
#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/elementwise.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/round_stochastic.h"

namespace dstrain::ops::gpu {
namespace {

DSTRAIN_DEVICE BFloat16 rounded(float value, std::uint16_t draw, BFloat16 /*type*/) {
  return stochastic_bfloat16(value, draw);
}
DSTRAIN_DEVICE Float16 rounded(float value, std::uint16_t draw, Float16 /*type*/) {
  return stochastic_float16(value, draw);
}

/// Index i stands for the eight elements of one Philox block.
template <class Half>
struct Round {
  const float* source;
  Half* target;
  const std::int64_t* key;
  std::uint32_t stream;
  std::int64_t first;  ///< index of element 0 in its tensor
  std::int64_t numel;
  DSTRAIN_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t block = first / 128 * 16 + i;
    const auto words = philox({static_cast<std::uint64_t>(*key), RandomPurpose::rounding, stream,
                               static_cast<std::uint64_t>(block)});
    for (int j = 0; j < 8; ++j) {
      const std::int64_t e = block / 16 * 128 + 16 * j + block % 16 - first;
      if (e < 0 || e >= numel) continue;
      const std::uint32_t word = words[static_cast<std::size_t>(j / 2)];
      const auto draw = static_cast<std::uint16_t>(j % 2 == 0 ? word & 0xffffU : word >> 16U);
      target[e] = rounded(source[e], draw, Half{});
    }
  }
};

}  // namespace

void round_stochastic(const RoundStochasticArgs& args, StreamView stream) {
  const std::int64_t numel = args.source.numel();
  const std::int64_t groups = divide_up(args.first + numel, 128) - args.first / 128;
  with_half_type(args.target.dtype(), [&](auto half) {
    using Half = decltype(half);
    for_elements("round_stochastic", groups * 16,
                 Round<Half>{floats(args.source), elements<Half>(args.target),
                             elements<std::int64_t>(args.key), args.stream, args.first, numel},
                 stream);
  });
}

}  // namespace dstrain::ops::gpu
