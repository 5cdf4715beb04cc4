#include <algorithm>

#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/decision.h"
#include "runtime/ops/cuda/elementwise.h"
#include "runtime/ops/cuda/square_digits.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/lamb.h"
#include "runtime/ops/lamb_element.h"

namespace dstrain::ops::gpu {
namespace {

/// Of a parameter's values and of its update.
struct SquarePair {
  SquareDigits of[lamb_sums];
};

struct Measure {
  const float* parameters;
  const float* gradients;
  float* exp_avg;
  float* exp_avg_sq;
  const LambScalars* scalars;
  const StepDecision* decision;  ///< or null
  std::int64_t numel;
  SquareDigits* digits;  ///< lamb_sums of them
};

DSTRAIN_KERNEL(square_threads)
measure_kernel(DSTRAIN_ARGUMENT Measure args) {
  if (!is_taken(args.decision)) return;
  auto& own = shared<SquarePair>();
  for (SquareDigits& squares : own.of) clear(squares);
  sync();
  const LambScalars scalars = *args.scalars;
  const float scale = gradient_scale(args.decision);
  const std::int64_t blocks = divide_up(args.numel, square_block);
  const std::int64_t lane = thread() % square_lanes;
  for (std::int64_t first = block_x() * square_blocks; first < blocks;
       first += blocks_x() * square_blocks) {
    const std::int64_t begin = (first + thread() / square_lanes) * square_block + lane;
    LaneSum values;
    LaneSum updates;
    for (std::int64_t e = begin; e < begin + square_block && e < args.numel; e += square_lanes) {
      const LambElement to =
          lamb_moments({args.exp_avg[e], args.exp_avg_sq[e]}, args.gradients[e] * scale, scalars);
      args.exp_avg[e] = to.m;
      args.exp_avg_sq[e] = to.v;
      values.add(args.parameters[e]);
      updates.add(lamb_update_of(args.parameters[e], to, scalars));
    }
    const double of_values = values.of_block();
    const double of_updates = updates.of_block();
    if (lane == 0) {
      add(own.of[0], of_values);
      add(own.of[1], of_updates);
    }
  }
  sync();
  for (int i = 0; i < lamb_sums; ++i) add(args.digits[i], own.of[i]);
}

struct FoldPair {
  SquareDigits* digits;  ///< lamb_sums of them, as of the next one
  SquareDigits* sums;
};

/// Carries the digits, adds those that come of it to the sums, and clears them. A block for each.
DSTRAIN_KERNEL(square_threads)
fold_pair_kernel(DSTRAIN_ARGUMENT FoldPair args) {
  struct Shared {
    SquareDigits digits;
    SquareDigits sums;
    ExactSum carried;
  };
  auto& s = shared<Shared>();
  SquareDigits& digits = args.digits[block_x()];
  SquareDigits& sums = args.sums[block_x()];
  copy_words(digits, s.digits);
  copy_words(sums, s.sums);
  clear(digits);
  sync();
  if (thread() == 0) {
    s.carried = ExactSum();
    s.carried.add(s.digits);
    s.carried.add_to(s.sums);
  }
  sync();
  copy_words(s.sums, sums);
}

struct TrustRatio {
  const SquareDigits* sums;
  const LambScalars* scalars;
  float* step_size;
};

/// The step size of the parameter. One block.
DSTRAIN_KERNEL(square_threads)
step_size_kernel(DSTRAIN_ARGUMENT TrustRatio args) {
  struct Shared {
    SquarePair sums;
    ExactSum squares[lamb_sums];
  };
  auto& s = shared<Shared>();
  for (int i = 0; i < lamb_sums; ++i) copy_words(args.sums[i], s.sums.of[i]);
  sync();
  if (thread() != 0) return;
  double norms[lamb_sums];
  for (int i = 0; i < lamb_sums; ++i) {
    s.squares[i] = ExactSum();
    s.squares[i].add(s.sums.of[i]);
    norms[i] = sqrt(s.squares[i].value_by(Ldexp{}));
  }
  const LambScalars& scalars = *args.scalars;
  *args.step_size = scalars.step_size * lamb_trust_ratio(norms[0], norms[1], scalars);
}

template <class Half>
struct Update {
  static constexpr int numel = pack_numel<float, Half>;
  float* parameters;
  const float* exp_avg;
  const float* exp_avg_sq;
  const LambScalars* scalars;
  const float* step_size;
  const StepDecision* decision;  ///< or null
  Half* working;                 ///< or null
  template <int n>
  DSTRAIN_DEVICE void apply(std::int64_t i) const {
    auto p = load<n>(parameters, i);
    if (is_taken(decision)) {
      const auto m = load<n>(exp_avg, i);
      const auto v = load<n>(exp_avg_sq, i);
      const LambScalars s = *scalars;
      const float size = *step_size;
#pragma unroll
      for (int j = 0; j < n; ++j) {
        p.at[j] = lamb_updated(p.at[j], {m.at[j], v.at[j]}, size, s);
      }
      store(p, parameters, i);
    }
    if (working != nullptr) store(converted<Half>(p), working, i);
  }
};

}  // namespace

void lamb_measure(const LambMeasureArgs& args, StreamView stream) {
  SquareDigits* const digits = op_state(stream).words().squares;
  const std::int64_t numel = args.parameters.numel();
  const std::int64_t blocks = divide_up(divide_up(numel, square_block), square_blocks);
  launch("lamb_measure", measure_kernel,
         {.x = std::min<std::int64_t>(blocks, square_grid),
          .threads = square_threads,
          .shared_bytes = sizeof(SquarePair)},
         Measure{floats(args.parameters), floats(args.gradients), floats(args.exp_avg),
                 floats(args.exp_avg_sq), elements<LambScalars>(args.scalars),
                 elements<StepDecision>(args.decision), numel, digits},
         stream);
  launch("lamb_measure", fold_pair_kernel,
         {.x = lamb_sums,
          .threads = square_threads,
          .shared_bytes = 2 * sizeof(SquareDigits) + sizeof(ExactSum)},
         FoldPair{digits, elements<SquareDigits>(args.sums)}, stream);
}

void lamb_update(const LambUpdateArgs& args, StreamView stream) {
  float* const step_size = &op_state(stream).words().step_size;
  const auto* const scalars = elements<LambScalars>(args.scalars);
  launch("lamb_update", step_size_kernel,
         {.threads = square_threads, .shared_bytes = sizeof(SquarePair) + 2 * sizeof(ExactSum)},
         TrustRatio{elements<SquareDigits>(args.sums), scalars, step_size}, stream);
  with_element_type(args.working.empty() ? DType::f32 : args.working.dtype(), [&](auto element) {
    using Half = decltype(element);
    const Update<Half> update{floats(args.parameters),
                              floats(args.exp_avg),
                              floats(args.exp_avg_sq),
                              scalars,
                              step_size,
                              elements<StepDecision>(args.decision),
                              elements<Half>(args.working)};
    const bool aligned =
        are_aligned(update.parameters, update.exp_avg, update.exp_avg_sq, update.working);
    for_packs("lamb_update", args.parameters.numel(), aligned, update, stream);
  });
}

}  // namespace dstrain::ops::gpu
