#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/convert_kernel.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/decision_cpu.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/lamb.h"
#include "runtime/ops/lamb_element.h"
#include "runtime/ops/simd.h"
#include "runtime/ops/square_sum_cpu.h"

namespace dstrain::ops {
namespace {

static_assert(sizeof(ExactSum::Digits) == lamb_sum_numel * sizeof(std::int64_t));

/// Elements whose update is kept until its squares are added up.
constexpr std::int64_t piece_numel = 4096;

/// Of a parameter's values and of its update.
using Squares = std::array<ExactSum, lamb_sums>;
using SquareDigits = std::array<ExactSum::Digits, lamb_sums>;

/// The arrays of a piece; they do not overlap.
struct Arrays {
  const float* __restrict parameters;
  const float* __restrict gradients;
  float* __restrict exp_avg;
  float* __restrict exp_avg_sq;
  float* __restrict update;
};

/// New moments, and the update that they give.
DSTRAIN_SIMD_CLONES
void measure_piece(const Arrays& arrays,
                   std::int64_t count,
                   float gradient_scale,
                   const LambScalars& scalars) {
  const LambScalars s = scalars;
  const auto [p, gradient, m, v, update] = arrays;
  for (std::int64_t i = 0; i < count; ++i) {
    const LambElement to = lamb_moments({m[i], v[i]}, gradient[i] * gradient_scale, s);
    m[i] = to.m;
    v[i] = to.v;
    update[i] = lamb_update_of(p[i], to, s);
  }
}

DSTRAIN_SIMD_CLONES
void update_chunk(float* __restrict p,
                  const float* __restrict m,
                  const float* __restrict v,
                  std::int64_t count,
                  float step_size,
                  const LambScalars& scalars) {
  const LambScalars s = scalars;
  for (std::int64_t i = 0; i < count; ++i) {
    p[i] = lamb_updated(p[i], {m[i], v[i]}, step_size, s);
  }
}

Squares measure_chunk(const LambMeasureArgs& args,
                      std::int64_t begin,
                      std::int64_t end,
                      float gradient_scale) {
  std::array<float, piece_numel> update;
  Squares squares;
  for (; begin < end; begin += piece_numel) {
    const std::int64_t count = std::min(piece_numel, end - begin);
    const float* const p = floats(args.parameters) + begin;
    measure_piece({p, floats(args.gradients) + begin, floats(args.exp_avg) + begin,
                   floats(args.exp_avg_sq) + begin, update.data()},
                  count, gradient_scale, *elements<LambScalars>(args.scalars));
    squares[0].add(cpu::sum_squares(p, count));
    squares[1].add(cpu::sum_squares(update.data(), count));
  }
  return squares;
}

void measure(const LambMeasureArgs& args, float gradient_scale) {
  const std::int64_t chunks = chunk_count(args.parameters.numel(), elementwise_chunk);
  std::vector<Squares> parts(static_cast<std::size_t>(chunks));
  for_chunks(args.parameters.numel(), elementwise_chunk, [&](std::int64_t begin, std::int64_t end) {
    parts[static_cast<std::size_t>(begin / elementwise_chunk)] =
        measure_chunk(args, begin, end, gradient_scale);
  });
  Squares all;
  for (const Squares& part : parts) {
    for (std::size_t i = 0; i < all.size(); ++i) all[i].add(part[i]);
  }
  auto& sums = *elements<SquareDigits>(args.sums);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].add_to(sums[i]);
}

float trust_ratio(const SquareDigits& sums, const LambScalars& scalars) {
  Squares squares;
  for (std::size_t i = 0; i < squares.size(); ++i) squares[i].add(sums[i]);
  const double values = std::sqrt(squares[0].value());
  const double update = std::sqrt(squares[1].value());
  return lamb_trust_ratio(values, update, scalars);
}

void update(const LambUpdateArgs& args) {
  const auto& scalars = *elements<LambScalars>(args.scalars);
  const float step_size =
      scalars.step_size * trust_ratio(*elements<SquareDigits>(args.sums), scalars);
  for_chunks(args.parameters.numel(), elementwise_chunk, [&](std::int64_t begin, std::int64_t end) {
    update_chunk(floats(args.parameters) + begin, floats(args.exp_avg) + begin,
                 floats(args.exp_avg_sq) + begin, end - begin, step_size, scalars);
  });
}

}  // namespace

namespace cpu {

void lamb_measure(const LambMeasureArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args] {
    const StepDecision decision = decision_in(args.decision);
    if (decision.is_taken()) measure(args, static_cast<float>(decision.gradient_scale));
  });
}

void lamb_update(const LambUpdateArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args] {
    if (decision_in(args.decision).is_taken()) update(args);
    if (args.working.empty()) return;
    convert_values(host_access(args.parameters), host_access(args.working));
  });
}

}  // namespace cpu
}  // namespace dstrain::ops
