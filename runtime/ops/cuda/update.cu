#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/decision.h"
#include "runtime/ops/cuda/elementwise.h"
#include "runtime/ops/cuda/square_digits.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/update.h"

namespace dstrain::ops::gpu {
namespace {

template <class Rule>
inline constexpr int state_count = static_cast<int>(Rule::states.size());

/// The arrays of a rule's states, and their packs of some elements.
template <class Rule>
struct StateArrays {
  float* of[state_count<Rule>];
};
template <class Rule>
StateArrays<Rule> states_of(const UpdateArgs& args) {
  StateArrays<Rule> states;
  for (int k = 0; k < state_count<Rule>; ++k) states.of[k] = floats(args.states[k]);
  return states;
}
template <class Rule>
bool are_aligned_states(const StateArrays<Rule>& states) {
  return std::ranges::all_of(states.of, [](const float* state) { return are_aligned(state); });
}

template <class Rule, int n>
struct StatePacks {
  Pack<float, n> of[state_count<Rule>];
  DSTRAIN_DEVICE StatePacks(const StateArrays<Rule>& arrays, std::int64_t i) {
#pragma unroll
    for (int k = 0; k < state_count<Rule>; ++k) of[k] = load<n>(arrays.of[k], i);
  }
  /// Reads the states of element `j` of the pack.
  DSTRAIN_DEVICE void read(int j, rules::State<Rule>& state) const {
#pragma unroll
    for (int k = 0; k < state_count<Rule>; ++k) state[k] = of[k].at[j];
  }
  DSTRAIN_DEVICE void write(int j, const rules::State<Rule>& state) {
#pragma unroll
    for (int k = 0; k < state_count<Rule>; ++k) of[k].at[j] = state[k];
  }
  DSTRAIN_DEVICE void store_to(const StateArrays<Rule>& arrays, std::int64_t i) const {
#pragma unroll
    for (int k = 0; k < state_count<Rule>; ++k) store(of[k], arrays.of[k], i);
  }
};

/// Half is the type of the working copy; float if there is none.
template <class Rule, class Half>
struct Update {
  static constexpr int numel = pack_numel<float, Half>;
  float* parameters;
  const float* gradients;
  StateArrays<Rule> states;
  const typename Rule::Scalars* scalars;
  const StepDecision* decision;  ///< may be null
  Half* working;                 ///< may be null
  template <int n>
  DSTRAIN_DEVICE void apply(std::int64_t i) const {
    auto p = load<n>(parameters, i);
    if (is_taken(decision)) {
      const auto gradient = load<n>(gradients, i);
      StatePacks<Rule, n> packs(states, i);
      const float scale = gradient_scale(decision);
#pragma unroll
      for (int j = 0; j < n; ++j) {
        rules::State<Rule> state;
        packs.read(j, state);
        p.at[j] = Rule::update(p.at[j], gradient.at[j] * scale, state, *scalars);
        packs.write(j, state);
      }
      store(p, parameters, i);
      packs.store_to(states, i);
    }
    if (working != nullptr) store(converted<Half>(p), working, i);
  }
};

template <class Rule>
void update_elementwise(const UpdateArgs& args, StreamView stream) {
  with_element_type(args.working.empty() ? DType::f32 : args.working.dtype(), [&](auto element) {
    using Half = decltype(element);
    const Update<Rule, Half> update{floats(args.parameters),
                                    floats(args.gradients),
                                    states_of<Rule>(args),
                                    elements<typename Rule::Scalars>(args.scalars),
                                    elements<StepDecision>(args.decision),
                                    elements<Half>(args.working)};
    const bool aligned = are_aligned(update.parameters, update.gradients, update.working) &&
                         are_aligned_states<Rule>(update.states);
    for_packs("update", args.parameters.numel(), aligned, update, stream);
  });
}

// Layerwise rules.

/// The squares of a parameter's values and of its change.
struct SquarePair {
  SquareDigits of[norm_sums];
};

template <class Rule>
struct Measure {
  const float* parameters;
  const float* gradients;
  StateArrays<Rule> states;
  const typename Rule::Scalars* scalars;
  const StepDecision* decision;  ///< may be null
  std::int64_t numel;
  SquareDigits* digits;  ///< norm_sums of them
};

template <class Rule>
DSTRAIN_KERNEL(square_threads)
measure_kernel(DSTRAIN_ARGUMENT Measure<Rule> args) {
  if (!is_taken(args.decision)) return;
  auto& own = shared<SquarePair>();
  for (SquareDigits& squares : own.of) clear(squares);
  sync();
  const typename Rule::Scalars scalars = *args.scalars;
  const float scale = gradient_scale(args.decision);
  const std::int64_t blocks = divide_up(args.numel, square_block);
  const std::int64_t lane = thread() % square_lanes;
  for (std::int64_t first = block_x() * square_blocks; first < blocks;
       first += blocks_x() * square_blocks) {
    const std::int64_t begin = (first + thread() / square_lanes) * square_block + lane;
    LaneSum values;
    LaneSum changes;
    for (std::int64_t e = begin; e < begin + square_block && e < args.numel; e += square_lanes) {
      StatePacks<Rule, 1> pack(args.states, e);
      rules::State<Rule> state;
      pack.read(0, state);
      const float value = args.parameters[e];
      const float change = Rule::measure(value, args.gradients[e] * scale, state, scalars);
      pack.write(0, state);
      pack.store_to(args.states, e);
      values.add(value);
      changes.add(change);
    }
    const double of_values = values.of_block();
    const double of_changes = changes.of_block();
    if (lane == 0) {
      add(own.of[0], of_values);
      add(own.of[1], of_changes);
    }
  }
  sync();
  for (int i = 0; i < norm_sums; ++i) add(args.digits[i], own.of[i]);
}

struct FoldPair {
  SquareDigits* digits;  ///< norm_sums of them, like the next
  SquareDigits* sums;
};

/// Carries the digits, adds the result to the sums, and clears the digits. One block per sum.
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

template <class Rule>
struct TrustRatio {
  const SquareDigits* sums;
  const typename Rule::Scalars* scalars;
  float* rate;
};

/// Computes the parameter's step size. One block.
template <class Rule>
DSTRAIN_KERNEL(square_threads)
rate_kernel(DSTRAIN_ARGUMENT TrustRatio<Rule> args) {
  struct Shared {
    SquarePair sums;
    ExactSum squares[norm_sums];
  };
  auto& s = shared<Shared>();
  for (int i = 0; i < norm_sums; ++i) copy_words(args.sums[i], s.sums.of[i]);
  sync();
  if (thread() != 0) return;
  double norms[norm_sums];
  for (int i = 0; i < norm_sums; ++i) {
    s.squares[i] = ExactSum();
    s.squares[i].add(s.sums.of[i]);
    norms[i] = sqrt(s.squares[i].value_by(Ldexp{}));
  }
  const typename Rule::Scalars& scalars = *args.scalars;
  *args.rate = scalars.step_size * Rule::trust_ratio(norms[0], norms[1], scalars);
}

template <class Rule, class Half>
struct ScaledUpdate {
  static constexpr int numel = pack_numel<float, Half>;
  float* parameters;
  StateArrays<Rule> states;
  const typename Rule::Scalars* scalars;
  const float* rate;
  const StepDecision* decision;  ///< may be null
  Half* working;                 ///< may be null
  template <int n>
  DSTRAIN_DEVICE void apply(std::int64_t i) const {
    auto p = load<n>(parameters, i);
    if (is_taken(decision)) {
      const StatePacks<Rule, n> packs(states, i);
      const typename Rule::Scalars s = *scalars;
      const float own_rate = *rate;
#pragma unroll
      for (int j = 0; j < n; ++j) {
        rules::State<Rule> state;
        packs.read(j, state);
        p.at[j] = Rule::update(p.at[j], state, own_rate, s);
      }
      store(p, parameters, i);
    }
    if (working != nullptr) store(converted<Half>(p), working, i);
  }
};

template <class Rule>
void measure_layerwise(const UpdateArgs& args, StreamView stream) {
  SquareDigits* const digits = op_state(stream).words().squares;
  const std::int64_t numel = args.parameters.numel();
  const std::int64_t blocks = divide_up(divide_up(numel, square_block), square_blocks);
  launch("measure_update", measure_kernel<Rule>,
         {.x = std::min<std::int64_t>(blocks, square_grid),
          .threads = square_threads,
          .shared_bytes = sizeof(SquarePair)},
         Measure<Rule>{floats(args.parameters), floats(args.gradients), states_of<Rule>(args),
                       elements<typename Rule::Scalars>(args.scalars),
                       elements<StepDecision>(args.decision), numel, digits},
         stream);
  launch("measure_update", fold_pair_kernel,
         {.x = norm_sums,
          .threads = square_threads,
          .shared_bytes = 2 * sizeof(SquareDigits) + sizeof(ExactSum)},
         FoldPair{digits, elements<SquareDigits>(args.sums)}, stream);
}

template <class Rule>
void update_layerwise(const UpdateArgs& args, StreamView stream) {
  float* const rate = &op_state(stream).words().step_size;
  const auto* const scalars = elements<typename Rule::Scalars>(args.scalars);
  launch("update", rate_kernel<Rule>,
         {.threads = square_threads,
          .shared_bytes = sizeof(SquarePair) + norm_sums * sizeof(ExactSum)},
         TrustRatio<Rule>{elements<SquareDigits>(args.sums), scalars, rate}, stream);
  with_element_type(args.working.empty() ? DType::f32 : args.working.dtype(), [&](auto element) {
    using Half = decltype(element);
    const ScaledUpdate<Rule, Half> update{floats(args.parameters),
                                          states_of<Rule>(args),
                                          scalars,
                                          rate,
                                          elements<StepDecision>(args.decision),
                                          elements<Half>(args.working)};
    const bool aligned =
        are_aligned(update.parameters, update.working) && are_aligned_states<Rule>(update.states);
    for_packs("update", args.parameters.numel(), aligned, update, stream);
  });
}

}  // namespace

void update(const UpdateArgs& args, StreamView stream) {
  rules::Rules::visit(args.rule, [&](auto rule) {
    using Rule = decltype(rule);
    if constexpr (rules::Layerwise<Rule>) {
      update_layerwise<Rule>(args, stream);
    } else {
      update_elementwise<Rule>(args, stream);
    }
  });
}

void measure_update(const UpdateArgs& args, StreamView stream) {
  rules::Rules::visit(args.rule, [&](auto rule) {
    if constexpr (rules::Layerwise<decltype(rule)>) {
      measure_layerwise<decltype(rule)>(args, stream);
    }
  });
}

}  // namespace dstrain::ops::gpu
