#include <algorithm>
#include <cstring>

#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/philox16.h"
#include "runtime/ops/round_stochastic.h"
#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

constexpr std::int64_t group_numel = 128;

typedef std::uint16_t Draws8 __attribute__((vector_size(16)));

[[gnu::always_inline]] inline void store_draws(const Words8& words, std::uint16_t* target) {
  const Draws8 low = __builtin_convertvector(words & 0xffffU, Draws8);
  const Draws8 high = __builtin_convertvector(words >> 16U, Draws8);
  std::memcpy(target, &low, sizeof(low));
  std::memcpy(target + 16, &high, sizeof(high));
}

/// Draws the numbers for the elements of a group.
[[gnu::always_inline]] inline void draw(const RandomKey& key, std::uint16_t* draws) {
  const PhiloxBlocks16 drawn = philox16(key);
  for (const Words16& word : drawn.words) {
    store_draws(word.first, draws);
    store_draws(word.second, draws + 8);
    draws += 32;
  }
}

inline BFloat16 rounded(float value, std::uint16_t draw, BFloat16 /*type*/) {
  return stochastic_bfloat16(value, draw);
}
inline Float16 rounded(float value, std::uint16_t draw, Float16 /*type*/) {
  return stochastic_float16(value, draw);
}

/// Elements [first, first + count) of a tensor.
template <class Half>
DSTRAIN_SIMD_CLONES void round_kernel(const float* __restrict source,
                                      Half* __restrict target,
                                      std::int64_t first,
                                      std::int64_t count,
                                      RandomKey key) {
  std::uint16_t draws[group_numel];
  const std::int64_t end = first + count;
  for (std::int64_t at = first; at < end;) {
    const std::int64_t group = at / group_numel;
    key.index = 16 * static_cast<std::uint64_t>(group);
    draw(key, draws);
    const std::int64_t group_end = std::min(end, (group + 1) * group_numel);
    const std::uint16_t* const own = draws + at % group_numel;
    const std::int64_t numel = group_end - at;
    for (std::int64_t i = 0; i < numel; ++i) target[i] = rounded(source[i], own[i], Half{});
    source += numel;
    target += numel;
    at = group_end;
  }
}

}  // namespace

namespace cpu {

void round_stochastic(const RoundStochasticArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args] {
    const RandomKey key{static_cast<std::uint64_t>(*elements<std::int64_t>(args.key)),
                        RandomPurpose::rounding, args.stream};
    with_half_type(args.target.dtype(), [&](auto half) {
      for_chunks(args.source.numel(), elementwise_chunk, [&](std::int64_t begin, std::int64_t end) {
        round_kernel(floats(args.source) + begin, elements<decltype(half)>(args.target) + begin,
                     args.first + begin, end - begin, key);
      });
    });
  });
}

}  // namespace cpu
}  // namespace dstrain::ops
