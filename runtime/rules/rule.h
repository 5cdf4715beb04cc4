#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

namespace dstrain::rules {

// An update rule is what an optimizer does to one element of a parameter. Each is a struct that
// describes itself, and registry.h lists them; configuration, checkpoints, memory plans and the
// kernels of every device follow from it:
//
//   types            names in a configuration ("optimizer.type"), the usual one first
//   learning_rate    default for a configuration that has the type and no rate
//   Settings         parameters with DeepSpeed's defaults
//   parameters       their table: Parameter<Settings>
//   states           names in checkpoints of the values kept per element: f32, zero at the start
//   Scalars          floats, at most scalar_numel, that the kernels of a step read
//   difference       from the optimizer that DeepSpeed has under the name; absent if none
//   scalars()        Settings and Step -> Scalars, computed in double and rounded once
//
// and one of
//
//   update(p, g, state, s)         elementwise: returns the new parameter and changes the states;
//                                  any cut of the parameters has the same bits
//   measure(p, g, state, s),       layerwise: the change of an element is scaled by the norms of
//   trust_ratio(values, change),   its parameter and of that parameter's whole change. measure()
//   update(p, state, rate, s)      updates the states and returns the change; update() repeats it
//
// Formulas are compiled for CPUs and GPUs and have the same bits there: fuse with std::fma, and
// keep a parameter of zero unchanged by zero gradients and states, since padding must stay zero.
// zero gradients and states leave a parameter of zero as it is, since padding must stay zero.

/// The decay rates of Adam's moments.
struct Betas {
  double beta1 = 0.9;
  double beta2 = 0.999;
  friend bool operator==(const Betas&, const Betas&) = default;
};

/// One update of a run.
struct Step {
  std::int64_t number = 1;  ///< counts from 1
  double learning_rate = 0;
  std::optional<Betas> betas{};  ///< for this step; nothing: those of the settings
};

/// Corrects Adam's moments for their start at zero; 1 without correction.
struct BiasCorrection {
  double first = 1;        ///< 1 - beta1^t
  double second_root = 1;  ///< sqrt(1 - beta2^t)
  static BiasCorrection of(const Betas& betas, std::int64_t number) {
    const auto t = static_cast<double>(number);
    return {1.0 - std::pow(betas.beta1, t), std::sqrt(1.0 - std::pow(betas.beta2, t))};
  }
};

/// A parameter of a rule.
template <class Settings>
struct Parameter {
  std::string_view key;  ///< below "optimizer.params"
  std::variant<double Settings::*, bool Settings::*, Betas Settings::*> member;
};

/// Floats in a tensor of scalars, of which a rule uses the first few.
inline constexpr std::int64_t scalar_numel = 16;

/// Largest number of states of a rule.
inline constexpr std::size_t states_max = 2;

template <class Rule>
using State = float[std::tuple_size_v<decltype(Rule::states)>];

}  // namespace dstrain::rules
