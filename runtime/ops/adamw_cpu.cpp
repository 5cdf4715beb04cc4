#include <algorithm>

#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/adamw.h"
#include "runtime/ops/adamw_update.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/convert_kernel.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/decision_cpu.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

/// What is the same for all elements.
struct Scalars : AdamWScalars {
  float gradient_scale = 1;
};

/// Elements between two requests for what lies ahead, and how far ahead that is: the square root
/// and the division hold the processor up too long to ask for it in time by itself.
constexpr std::int64_t block_numel = 64;
constexpr std::int64_t ahead_numel = 512;

inline void prefetch_block(const float* values) {
  constexpr std::int64_t line_numel = 16;
  for (std::int64_t i = 0; i < block_numel; i += line_numel) {
    __builtin_prefetch(values + ahead_numel + i);
  }
}

/// The arrays of a run; they do not overlap.
struct Arrays {
  float* __restrict parameters;
  const float* __restrict gradients;
  float* __restrict exp_avg;
  float* __restrict exp_avg_sq;
};

/// Updates all elements; `after(i, parameter)` sees each new parameter.
template <class After>
inline void update_elements(const Arrays& arrays,
                            std::int64_t count,
                            const Scalars& scalars,
                            After after) {
  const Scalars s = scalars;
  const auto [p, g, m, v] = arrays;
  for (std::int64_t begin = 0; begin < count; begin += block_numel) {
    for (const float* const array : {static_cast<const float*>(p), g, static_cast<const float*>(m),
                                     static_cast<const float*>(v)}) {
      prefetch_block(array + begin);
    }
    const std::int64_t end = std::min(count, begin + block_numel);
    for (std::int64_t i = begin; i < end; ++i) {
      const AdamWElement to = adamw_update({p[i], m[i], v[i]}, g[i], s.gradient_scale, s);
      p[i] = to.p;
      m[i] = to.m;
      v[i] = to.v;
      after(i, to.p);
    }
  }
}

DSTRAIN_SIMD_CLONES
void update_all(const Arrays& arrays, std::int64_t count, const Scalars& scalars) {
  update_elements(arrays, count, scalars, [](std::int64_t, float) {});
}

template <class Half>
DSTRAIN_SIMD_CLONES void update_and_round(const Arrays& arrays,
                                          Half* __restrict working,
                                          std::int64_t count,
                                          const Scalars& scalars) {
  update_elements(arrays, count, scalars,
                  [working](std::int64_t i, float p) { working[i] = from_float<Half>(p); });
}

void update_chunk(const AdamWArgs& args,
                  std::int64_t begin,
                  std::int64_t count,
                  const Scalars& scalars) {
  const Arrays arrays{floats(args.parameters) + begin, floats(args.gradients) + begin,
                      floats(args.exp_avg) + begin, floats(args.exp_avg_sq) + begin};
  if (args.working.empty()) return update_all(arrays, count, scalars);
  with_half_type(args.working.dtype(), [&](auto half) {
    update_and_round(arrays, elements<decltype(half)>(args.working) + begin, count, scalars);
  });
}

}  // namespace

namespace cpu {

void adamw(const AdamWArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args] {
    const StepDecision decision = decision_in(args.decision);
    if (!decision.is_taken()) {
      if (!args.working.empty()) {
        convert_values(host_access(args.parameters), host_access(args.working));
      }
      return;
    }
    const Scalars scalars{*elements<AdamWScalars>(args.scalars),
                          static_cast<float>(decision.gradient_scale)};
    for_chunks(args.parameters.numel(), elementwise_chunk,
               [&](std::int64_t begin, std::int64_t end) {
                 update_chunk(args, begin, end - begin, scalars);
               });
  });
}

}  // namespace cpu
}  // namespace dstrain::ops
