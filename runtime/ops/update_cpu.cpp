#include <algorithm>
#include <utility>

#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/convert_kernel.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/decision_cpu.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/simd.h"
#include "runtime/ops/square_sum_cpu.h"
#include "runtime/ops/update.h"

namespace dstrain::ops {
namespace {

/// Elements between two prefetches, and the prefetch distance: the square root and the division
/// delay the processor's own prefetching too long.
constexpr std::int64_t block_numel = 64;
constexpr std::int64_t ahead_numel = 512;

inline void prefetch_block(const float* values) {
  constexpr std::int64_t line_numel = 16;
  for (std::int64_t i = 0; i < block_numel; i += line_numel) {
    __builtin_prefetch(values + ahead_numel + i);
  }
}

// Kernels take a rule's states as separate pointers that do not overlap: an array of them would
// keep the loop over elements from being vectorized.

/// Values that are the same for all elements.
template <class Rule>
struct Common {
  typename Rule::Scalars scalars;
  float gradient_scale = 1;
  std::int64_t count = 0;
};

/// Updates all elements; `after(i, parameter)` sees each new parameter.
template <class Rule, class After, class... Float>
inline void update_elements(const Common<Rule>& all,
                            After after,
                            float* __restrict p,
                            const float* __restrict g,
                            Float* __restrict... states) {
  const Common<Rule> common = all;
  for (std::int64_t begin = 0; begin < common.count; begin += block_numel) {
    prefetch_block(p + begin);
    prefetch_block(g + begin);
    (prefetch_block(states + begin), ...);
    const std::int64_t end = std::min(common.count, begin + block_numel);
    for (std::int64_t i = begin; i < end; ++i) {
      rules::State<Rule> state{states[i]...};
      const float to = Rule::update(p[i], g[i] * common.gradient_scale, state, common.scalars);
      p[i] = to;
      std::size_t k = 0;
      ((states[i] = state[k++]), ...);
      after(i, to);
    }
  }
}

template <class Rule, class... Float>
DSTRAIN_SIMD_CLONES void update_all(const Common<Rule>& common,
                                    float* __restrict p,
                                    const float* __restrict g,
                                    Float* __restrict... states) {
  update_elements<Rule>(
      common, [](std::int64_t, float) {}, p, g, states...);
}

template <class Rule, class Half, class... Float>
DSTRAIN_SIMD_CLONES void update_and_round(const Common<Rule>& common,
                                          Half* __restrict working,
                                          float* __restrict p,
                                          const float* __restrict g,
                                          Float* __restrict... states) {
  update_elements<Rule>(
      common, [working](std::int64_t i, float value) { working[i] = from_float<Half>(value); }, p,
      g, states...);
}

/// Calls `body(states...)` with the memory of a rule's states from element `begin` on.
template <class Rule, class Body>
void with_states(const UpdateArgs& args, std::int64_t begin, const Body& body) {
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    body((floats(args.states[k]) + begin)...);
  }
  (std::make_index_sequence<Rule::states.size()>());
}

template <class Rule>
void update_elementwise(const UpdateArgs& args, float gradient_scale) {
  const Common<Rule> common{*elements<typename Rule::Scalars>(args.scalars), gradient_scale};
  for_chunks(args.parameters.numel(), elementwise_chunk, [&](std::int64_t begin, std::int64_t end) {
    Common<Rule> own = common;
    own.count = end - begin;
    float* const p = floats(args.parameters) + begin;
    const float* const g = floats(args.gradients) + begin;
    with_states<Rule>(args, begin, [&](auto*... states) {
      if (args.working.empty()) return update_all<Rule>(own, p, g, states...);
      with_half_type(args.working.dtype(), [&](auto half) {
        auto* const working = elements<decltype(half)>(args.working) + begin;
        update_and_round<Rule>(own, working, p, g, states...);
      });
    });
  });
}

// Layerwise rules.

/// Elements whose change is kept until its squares are summed.
constexpr std::int64_t piece_numel = 4096;

/// Squares of a parameter's values and of its change.
using Squares = std::array<ExactSum, norm_sums>;
using SquareDigits = std::array<ExactSum::Digits, norm_sums>;

/// Updates the states and computes the change that they give.
template <class Rule, class... Float>
DSTRAIN_SIMD_CLONES void measure_piece(const Common<Rule>& all,
                                       float* __restrict change,
                                       const float* __restrict p,
                                       const float* __restrict g,
                                       Float* __restrict... states) {
  const Common<Rule> common = all;
  for (std::int64_t i = 0; i < common.count; ++i) {
    rules::State<Rule> state{states[i]...};
    change[i] = Rule::measure(p[i], g[i] * common.gradient_scale, state, common.scalars);
    std::size_t k = 0;
    ((states[i] = state[k++]), ...);
  }
}

template <class Rule, class... Float>
DSTRAIN_SIMD_CLONES void update_by(const Common<Rule>& all,
                                   float rate,
                                   float* __restrict p,
                                   const Float* __restrict... states) {
  const Common<Rule> common = all;
  for (std::int64_t i = 0; i < common.count; ++i) {
    const rules::State<Rule> state{states[i]...};
    p[i] = Rule::update(p[i], state, rate, common.scalars);
  }
}

template <class Rule>
Squares measure_chunk(const UpdateArgs& args,
                      std::int64_t begin,
                      std::int64_t end,
                      Common<Rule> common) {
  std::array<float, piece_numel> change;
  Squares squares;
  for (; begin < end; begin += piece_numel) {
    common.count = std::min(piece_numel, end - begin);
    const float* const p = floats(args.parameters) + begin;
    const float* const g = floats(args.gradients) + begin;
    with_states<Rule>(args, begin, [&](auto*... states) {
      measure_piece<Rule>(common, change.data(), p, g, states...);
    });
    squares[0].add(cpu::sum_squares(p, common.count));
    squares[1].add(cpu::sum_squares(change.data(), common.count));
  }
  return squares;
}

template <class Rule>
void measure(const UpdateArgs& args, float gradient_scale) {
  const std::int64_t chunks = chunk_count(args.parameters.numel(), elementwise_chunk);
  std::vector<Squares> parts(static_cast<std::size_t>(chunks));
  const Common<Rule> common{*elements<typename Rule::Scalars>(args.scalars), gradient_scale};
  for_chunks(args.parameters.numel(), elementwise_chunk, [&](std::int64_t begin, std::int64_t end) {
    parts[static_cast<std::size_t>(begin / elementwise_chunk)] =
        measure_chunk<Rule>(args, begin, end, common);
  });
  Squares all;
  for (const Squares& part : parts) {
    for (std::size_t i = 0; i < all.size(); ++i) all[i].add(part[i]);
  }
  auto& sums = *elements<SquareDigits>(args.sums);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].add_to(sums[i]);
}

template <class Rule>
float trust_ratio(const SquareDigits& sums, const typename Rule::Scalars& scalars) {
  std::array<double, norm_sums> norms{};
  for (std::size_t i = 0; i < norms.size(); ++i) {
    ExactSum squares;
    squares.add(sums[i]);
    norms[i] = std::sqrt(squares.value());
  }
  return Rule::trust_ratio(norms[0], norms[1], scalars);
}

template <class Rule>
void update_layerwise(const UpdateArgs& args) {
  const Common<Rule> common{*elements<typename Rule::Scalars>(args.scalars)};
  const float ratio = trust_ratio<Rule>(*elements<SquareDigits>(args.sums), common.scalars);
  const float rate = common.scalars.step_size * ratio;
  for_chunks(args.parameters.numel(), elementwise_chunk, [&](std::int64_t begin, std::int64_t end) {
    Common<Rule> own = common;
    own.count = end - begin;
    with_states<Rule>(args, begin, [&](const auto*... states) {
      update_by<Rule>(own, rate, floats(args.parameters) + begin, states...);
    });
  });
  if (args.working.empty()) return;
  convert_values(host_access(args.parameters), host_access(args.working));
}

}  // namespace

namespace cpu {

void update(const UpdateArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args] {
    const StepDecision decision = decision_in(args.decision);
    if (!decision.is_taken()) {
      if (args.working.empty()) return;
      return convert_values(host_access(args.parameters), host_access(args.working));
    }
    rules::Rules::visit(args.rule, [&](auto rule) {
      using Rule = decltype(rule);
      if constexpr (rules::Layerwise<Rule>) {
        update_layerwise<Rule>(args);
      } else {
        update_elementwise<Rule>(args, static_cast<float>(decision.gradient_scale));
      }
    });
  });
}

void measure_update(const UpdateArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args] {
    const StepDecision decision = decision_in(args.decision);
    if (!decision.is_taken()) return;
    rules::Rules::visit(args.rule, [&](auto rule) {
      if constexpr (rules::Layerwise<decltype(rule)>) {
        measure<decltype(rule)>(args, static_cast<float>(decision.gradient_scale));
      }
    });
  });
}

}  // namespace cpu
}  // namespace dstrain::ops
