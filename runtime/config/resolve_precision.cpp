#include <cmath>

#include <fmt/format.h>

#include "runtime/config/settings_builder.h"

namespace dstrain::config {
namespace {

constexpr std::string_view autocast_key = "torch_autocast.enabled";

/// After this many overflowing steps in a row, something other than the loss scale is wrong: the
/// scale needs at most that many to become small.
constexpr std::int64_t default_skips = 100;

LossScaleSettings::Machine machine_of(const std::string& name) {
  using Machine = LossScaleSettings::Machine;
  return name == "fused" ? Machine::fused : Machine::zero;
}

/// Warns of settings that a fixed scale does not use.
void warn_if_fixed(SettingsBuilder& builder) {
  for (const char* const key :
       {"fp16.initial_scale_power", "fp16.loss_scale_window", "fp16.hysteresis",
        "fp16.consecutive_hysteresis", "fp16.min_loss_scale"}) {
    if (!builder.config().has(key)) continue;
    builder.add_warning(key, "has no effect: fp16.loss_scale is fixed");
  }
}

void check_dynamic(SettingsBuilder& builder) {
  const LossScaleSettings& scale = builder.settings().loss_scale;
  const auto require = [&builder](bool right, std::string_view key, const std::string& message) {
    if (!right) builder.add_problem(key, message);
  };
  require(scale.window >= 1, "fp16.loss_scale_window",
          fmt::format("must be at least 1 if the loss scale is dynamic, got {}", scale.window));
  require(scale.hysteresis >= 1, "fp16.hysteresis",
          fmt::format("must be at least 1 if the loss scale is dynamic, got {}", scale.hysteresis));
  require(scale.least > 0, "fp16.min_loss_scale",
          fmt::format("must be more than 0 if the loss scale is dynamic, got {}", scale.least));
  require(scale.least <= scale.initial, "fp16.min_loss_scale",
          fmt::format("is above the initial loss scale, {}", scale.initial));
  if (scale.machine != LossScaleSettings::Machine::fused) return;
  for (const char* const key : {"fp16.hysteresis", "fp16.consecutive_hysteresis"}) {
    if (!builder.config().has(key)) continue;
    builder.add_warning(key, "has no effect with --loss_scaler fused");
  }
}

/// Follows DeepSpeed: a loss_scale other than 0 is fixed. With torch_autocast, the defaults are
/// those of torch.amp.GradScaler.
void resolve_loss_scale(SettingsBuilder& builder) {
  LossScaleSettings& scale = builder.settings().loss_scale;
  if (builder.config().boolean(autocast_key).value_or(false)) {
    scale.window = 2000;
    scale.hysteresis = 1;
  }
  const double fixed = builder.pick("fp16.loss_scale", 0.0);
  const std::int64_t power = builder.pick("fp16.initial_scale_power", 16, 16);
  scale.window = builder.pick("fp16.loss_scale_window", scale.window, scale.window);
  scale.hysteresis = builder.pick("fp16.hysteresis", scale.hysteresis, scale.hysteresis);
  scale.consecutive_hysteresis =
      builder.pick("fp16.consecutive_hysteresis", scale.consecutive_hysteresis);
  scale.least = builder.pick("fp16.min_loss_scale", scale.least);
  if (fixed > 0) {
    scale.initial = fixed;
    return warn_if_fixed(builder);
  }
  scale.machine = machine_of(builder.options().loss_scaler.value);
  scale.initial = std::ldexp(1.0, static_cast<int>(power));
  check_dynamic(builder);
}

/// Returns what enabled a precision.
std::string origin(const SettingsBuilder& builder, std::string_view key, const Flag<bool>& flag) {
  return builder.config().boolean(key) ? std::string(key) : flag.typed_as;
}

/// Autocast rounds weights and the inputs of products; here all activations have that dtype.
/// bf16.enabled asks for the same, but fp16.enabled has another loss scale.
void resolve_autocast(SettingsBuilder& builder, bool bf16_too, bool fp16_too) {
  constexpr std::string_view dtype_key = "torch_autocast.dtype";
  constexpr std::string_view modules_key = "torch_autocast.lower_precision_safe_modules";
  const std::string name = builder.pick(dtype_key, "");
  if (builder.config().find(dtype_key) == nullptr && !builder.config().is_faulty(dtype_key)) {
    builder.add_problem(dtype_key, R"(is missing; give "bfloat16" or "float16")");
  }
  const bool fp16 = name == "float16";
  if (fp16_too || (bf16_too && fp16)) {
    builder.add_problem(autocast_key,
                        fmt::format("is on, and so is {}.enabled; leave out one of them",
                                    fp16_too ? "fp16" : "bf16"));
  }
  builder.settings().dtype = fp16 ? DType::f16 : DType::bf16;
  builder.add_warning(
      autocast_key,
      fmt::format("is read as {0}.enabled: all activations are {0}, also between layers",
                  fp16 ? "fp16" : "bf16"));
  if (builder.config().has(modules_key)) {
    builder.add_warning(modules_key, "has no effect: all weights and activations are of one dtype");
  }
}

void resolve_dtype(SettingsBuilder& builder) {
  constexpr std::string_view parameters = "data_types.param_dtype";
  const TrainOptions& options = builder.options();
  const bool bf16 = builder.pick("bf16.enabled", options.bf16, options.bf16.value);
  const bool fp16 = builder.pick("fp16.enabled", options.fp16, options.fp16.value);
  if (builder.pick(autocast_key, false)) return resolve_autocast(builder, bf16, fp16);
  if (bf16 && fp16) {
    builder.add_problem(origin(builder, "fp16.enabled", builder.options().fp16),
                        fmt::format("is on, and so is {}; leave out one of them",
                                    origin(builder, "bf16.enabled", builder.options().bf16)));
    return;
  }
  if (!bf16 && !fp16) return;
  builder.settings().dtype = fp16 ? DType::f16 : DType::bf16;
  if (builder.config().text_of(parameters)) {  // must be "fp32": nothing else is accepted
    builder.add_problem(parameters,
                        fmt::format("is \"fp32\", but {} is enabled; leave out one of them",
                                    precision_name(builder.settings().dtype)));
  }
}

/// TF32 is a way to multiply fp32 by fp32, so a 16-bit run cannot use it.
void resolve_tf32(SettingsBuilder& builder) {
  TrainSettings& settings = builder.settings();
  const Flag<bool>& tf32 = builder.options().tf32;
  settings.tf32 = tf32.value && settings.dtype == DType::f32;
  if (!tf32.value || settings.tf32) return;
  builder.problems().warn(
      {}, tf32.typed_as,
      fmt::format("has no effect: the run multiplies in {}", precision_name(settings.dtype)));
}

}  // namespace

void resolve_precision(SettingsBuilder& builder) {
  resolve_dtype(builder);
  resolve_tf32(builder);
  TrainSettings& settings = builder.settings();
  const bool fp16 = settings.dtype == DType::f16;
  if (fp16) resolve_loss_scale(builder);
  const Flag<std::string>& scaler = builder.options().loss_scaler;
  if (scaler.typed() && settings.loss_scale.machine == LossScaleSettings::Machine::fixed) {
    builder.problems().warn({}, scaler.typed_as, "has no effect: the loss scale is not dynamic");
  }
  const bool bf16_skips =
      settings.dtype == DType::bf16 && builder.config().has("bf16.check_grad_overflow");
  const Flag<std::int64_t>& skips = builder.options().max_skipped_steps;
  settings.max_skipped_steps =
      skips.typed() ? skips.value : (fp16 || bf16_skips ? default_skips : 0);
}

}  // namespace dstrain::config
