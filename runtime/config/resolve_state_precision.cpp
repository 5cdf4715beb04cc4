#include <tuple>

#include <fmt/format.h>

#include "runtime/config/choice.h"
#include "runtime/config/settings_builder.h"

namespace dstrain::config {
namespace {

constexpr std::string_view gradients_key = "data_types.grad_accum_dtype";
constexpr std::string_view communication_key = "communication_data_type";
constexpr std::string_view bf16_states_key = "bf16.bf16_optimizer_states";
constexpr std::string_view fp32_states_key = "optimizer.params.fp32_optimizer_states";

DType dtype_named(const std::string& name) {
  const std::string lower = lower_case(name);
  if (lower == "fp32") return DType::f32;
  return lower == "fp16" ? DType::f16 : DType::bf16;  // DeepSpeed also accepts bfp16
}

/// Returns the dtype that a key names, else `fallback`.
DType pick_dtype(SettingsBuilder& builder, std::string_view path, DType fallback) {
  const std::string name(precision_name(fallback));
  return dtype_named(builder.pick(path, name.c_str()));
}

/// Whether the section of that dtype, rather than only torch_autocast, sets the run's dtype.
bool is_enabled(const SettingsBuilder& builder, DType dtype) {
  if (builder.settings().dtype != dtype) return false;
  if (!builder.config().boolean("torch_autocast.enabled").value_or(false)) return true;
  const bool typed = builder.options().bf16.value;
  return dtype == DType::bf16 && builder.config().boolean("bf16.enabled").value_or(typed);
}

/// Warns of a key in a section that is off: DeepSpeed ignores it.
void warn_off(SettingsBuilder& builder, std::string_view path, std::string_view section) {
  builder.add_warning(path, fmt::format("has no effect: {} is not enabled", section));
}

/// Returns the dtype of the masters: fp32, unless the section of the run's dtype says otherwise.
DType pick_masters(SettingsBuilder& builder) {
  DType masters = DType::f32;
  for (const auto& [dtype, section, path] :
       {std::tuple{DType::bf16, "bf16", "bf16.bf16_master_weights_and_grads"},
        std::tuple{DType::f16, "fp16", "fp16.fp16_master_weights_and_grads"}}) {
    if (!builder.pick(path, false)) continue;
    if (!is_enabled(builder, dtype)) {
      warn_off(builder, path, section);
      continue;
    }
    masters = dtype;
    if (!trains(builder.options())) continue;
    builder.add_warning(path,
                        "there is no fp32 master: weights are updated in 16 bits, and rounded "
                        "stochastically");
  }
  return masters;
}

/// Reports state dtypes that do not work with these masters.
void check_states(SettingsBuilder& builder, DType masters, bool bf16, bool fp32) {
  if (bf16 && !is_enabled(builder, DType::bf16)) {
    warn_off(builder, bf16_states_key, "bf16");
  } else if (bf16 && masters != DType::bf16) {
    builder.add_problem(bf16_states_key,
                        "needs bf16.bf16_master_weights_and_grads, as in DeepSpeed");
  }
  if (!fp32 && masters == DType::f32) {
    builder.add_warning(fp32_states_key,
                        "has no effect: states are of the dtype of master weights, which are fp32");
  }
  if (!fp32 && masters == DType::f16) {
    builder.add_problem(fp32_states_key,
                        "fp16 cannot hold the squares of gradients, which are often smaller than "
                        "6e-8; leave it out, or train in bf16");
  }
}

/// Two keys set it. As in DeepSpeed, the second one means the dtype of the masters.
DType pick_states(SettingsBuilder& builder, DType masters) {
  const std::optional<bool> bf16 = builder.config().boolean(bf16_states_key);
  const std::optional<bool> fp32 = builder.config().boolean(fp32_states_key);
  check_states(builder, masters, bf16.value_or(false), fp32.value_or(true));
  if (masters == DType::bf16 && bf16 && fp32 && *bf16 == *fp32) {
    builder.add_problem(fp32_states_key, fmt::format("is {}, and so is {}; leave out one of them",
                                                     *fp32, bf16_states_key));
  }
  const bool halves = masters == DType::bf16 && (bf16.value_or(false) || !fp32.value_or(true));
  const auto origin = [halves](const std::optional<bool>& given, bool value) {
    return given == value ? "file" : halves ? "derived" : "default";
  };
  builder.decided(bf16_states_key, halves, origin(bf16, halves));
  builder.decided(fp32_states_key, !halves, origin(fp32, !halves));
  return halves ? DType::bf16 : DType::f32;
}

}  // namespace

void resolve_state_precision(SettingsBuilder& builder) {
  const DType dtype = builder.settings().dtype;
  StatePrecision& precision = builder.settings().precision;
  precision.masters = pick_masters(builder);
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
