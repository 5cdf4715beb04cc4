#include "cmd/bench/move_loop.h"

#include <bit>

#include "runtime/ops/chunks.h"
#include "runtime/ops/simd.h"

namespace dstrain::bench {
namespace {

inline float either(float a, float b) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(a) | std::bit_cast<std::uint32_t>(b));
}

/// One element, turned round: every value read is written somewhere. The parameter it had.
[[gnu::always_inline]] inline float move_one(float& parameter,
                                             float gradient,
                                             float& exp_avg,
                                             float& exp_avg_sq) {
  const float before = parameter;
  parameter = either(gradient, exp_avg_sq);
  exp_avg_sq = exp_avg;
  exp_avg = before;
  return before;
}

DSTRAIN_SIMD_CLONES
void move_all(float* __restrict parameters,
              const float* __restrict gradients,
              float* __restrict exp_avg,
              float* __restrict exp_avg_sq,
              std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    move_one(parameters[i], gradients[i], exp_avg[i], exp_avg_sq[i]);
  }
}

DSTRAIN_SIMD_CLONES
void move_all(float* __restrict parameters,
              const float* __restrict gradients,
              float* __restrict exp_avg,
              float* __restrict exp_avg_sq,
              BFloat16* __restrict working,
              std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float before = move_one(parameters[i], gradients[i], exp_avg[i], exp_avg_sq[i]);
    working[i].bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(before) >> 16);
  }
}

}  // namespace

void move_like_adamw(const UpdatedArrays& arrays) {
  ops::for_chunks(static_cast<std::int64_t>(arrays.parameters.size()), ops::elementwise_chunk,
                  [&](std::int64_t begin, std::int64_t end) {
                    float* const p = arrays.parameters.data() + begin;
                    const float* const g = arrays.gradients.data() + begin;
                    float* const m = arrays.exp_avg.data() + begin;
                    float* const v = arrays.exp_avg_sq.data() + begin;
                    if (arrays.working.empty()) {
                      move_all(p, g, m, v, end - begin);
                    } else {
                      move_all(p, g, m, v, arrays.working.data() + begin, end - begin);
                    }
                  });
}

}  // namespace dstrain::bench
