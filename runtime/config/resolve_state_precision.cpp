#include <fmt/format.h>

#include "runtime/config/choice.h"
#include "runtime/config/settings_builder.h"

namespace dstrain::config {
namespace {

constexpr std::string_view gradients_key = "data_types.grad_accum_dtype";
constexpr std::string_view communication_key = "communication_data_type";
constexpr std::string_view states_key = "optimizer.params.fp32_optimizer_states";

DType dtype_named(const std::string& name) {
  const std::string lower = lower_case(name);
  if (lower == "fp32") return DType::f32;
  return lower == "fp16" ? DType::f16 : DType::bf16;  // DeepSpeed calls it bfp16, too
}

/// The dtype that a key names, else `fallback`.
DType pick_dtype(SettingsBuilder& builder, std::string_view path, DType fallback) {
  const std::string name(precision_name(fallback));
  return dtype_named(builder.pick(path, name.c_str()));
}

/// Whether what is updated is what units see, without an fp32 master: the key of the run's dtype.
bool pick_masters(SettingsBuilder& builder) {
  bool picked = false;
  for (const auto& [dtype, section, path] :
       {std::tuple{DType::bf16, "bf16", "bf16.bf16_master_weights_and_grads"},
        std::tuple{DType::f16, "fp16", "fp16.fp16_master_weights_and_grads"}}) {
    const bool on = builder.pick(path, false);
    const bool own = builder.settings().dtype == dtype;
    if (on && !own) builder.add_problem(path, fmt::format("needs {}.enabled", section));
    if (!on || !own) continue;
    builder.add_warning(path,
                        "there is no fp32 master: weights are updated in 16 bits, and rounded "
                        "stochastically");
    picked = true;
  }
  return picked;
}

DType pick_states(SettingsBuilder& builder, DType masters) {
  constexpr std::string_view bf16_key = "bf16.bf16_optimizer_states";
  const bool bf16 = builder.pick(bf16_key, false);
  // As in DeepSpeed: of the dtype of what is updated.
  const bool as_masters = !builder.pick(states_key, true);
  if (bf16 && masters != DType::bf16) {
    builder.add_problem(bf16_key, "needs bf16.bf16_master_weights_and_grads, as in DeepSpeed");
  }
  if (!as_masters) return bf16 ? DType::bf16 : DType::f32;
  if (masters == DType::f32) {
    builder.add_warning(states_key,
                        "has no effect: states are of the dtype of master weights, which are fp32");
  }
  if (masters == DType::f16) {
    builder.add_problem(states_key,
                        "fp16 cannot hold the squares of gradients, which are often smaller than "
                        "6e-8; leave it out, or train in bf16");
  }
  return masters;
}

}  // namespace

void resolve_state_precision(SettingsBuilder& builder) {
  const DType dtype = builder.settings().dtype;
  StatePrecision& precision = builder.settings().precision;
  const bool kept_in_half = pick_masters(builder);
  precision.masters = kept_in_half ? dtype : DType::f32;
  precision.optimizer_states = pick_states(builder, precision.masters);
  precision.gradients = pick_dtype(builder, gradients_key, precision.masters);
  precision.communication = pick_dtype(builder, communication_key, precision.gradients);
  const DType sent = precision.communication;
  if (is_half(sent) && is_half(precision.gradients) && sent != precision.gradients) {
    builder.add_problem(communication_key,
                        fmt::format("is {}, but gradients are kept in {}; leave it out, or give "
                                    "\"fp32\"",
                                    precision_name(sent), precision_name(precision.gradients)));
  }
  if (precision.gradients != DType::f32 && precision.gradients != dtype) {
    builder.add_problem(
        gradients_key,
        fmt::format("gradients are kept in fp32 or in the dtype of the weights, which is {}",
                    precision_name(dtype)));
  }
}

}  // namespace dstrain::config
