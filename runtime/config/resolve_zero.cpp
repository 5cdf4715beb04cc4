// zero_optimization, its offload sections and the deprecated keys that these replace.
#include <fmt/format.h>

#include "runtime/config/settings_builder.h"

namespace dstrain::config {
namespace {

constexpr std::string_view super_offload = "zero_optimization.offload_optimizer.super_offload";

OffloadSettings::Device device_named(std::string_view name) {
  if (name == "cpu") return OffloadSettings::Device::cpu;
  return name == "nvme" ? OffloadSettings::Device::nvme : OffloadSettings::Device::none;
}

/// Whether the stage is lower; false if the file's stage is wrong.
bool lacks_stage(SettingsBuilder& builder, int lowest) {
  return builder.settings().zero.stage < lowest &&
         !builder.config().is_faulty("zero_optimization.stage");
}

void warn_stage(SettingsBuilder& builder,
                std::string_view path,
                int lowest_stage,
                std::string_view meaning) {
  if (!lacks_stage(builder, lowest_stage) || !builder.config().has(path)) return;
  builder.add_warning(
      path, fmt::format("has no effect at stage {}: {}", builder.settings().zero.stage, meaning));
}

void resolve_stages(SettingsBuilder& builder) {
  ZeroSettings& zero = builder.settings().zero;
  const std::int64_t hidden = builder.context().hidden;
  const std::int64_t squared = hidden > 0 ? hidden * hidden : -1;
  const std::int64_t tenfold = hidden > 0 ? 10 * hidden : -1;
  const std::string in = "zero_optimization.";
  if (builder.config().is_auto(in + "stage") && !builder.options().zero_stage.typed()) {
    builder.add_problem(in + "stage", "\"auto\" needs --zero_stage N; or write the stage here");
  }
  zero.stage =
      static_cast<int>(builder.pick(in + "stage", builder.options().zero_stage, std::int64_t{0}));
  zero.reduce_bucket_numel = builder.pick(in + "reduce_bucket_size", squared, 0);
  zero.persistence_threshold_numel = builder.pick(in + "stage3_param_persistence_threshold",
                                                  tenfold, zero.persistence_threshold_numel);
  zero.persistence_total_numel =
      builder.pick(in + "stage3_model_persistence_threshold", -1, zero.persistence_total_numel);
  zero.overlap = builder.pick(in + "overlap_comm", zero.stage == 3);  // DeepSpeed's default
  const std::int64_t most_of_squared = hidden > 0 ? squared * 9 / 10 : -1;
  zero.prefetch_numel =
      builder.pick(in + "stage3_prefetch_bucket_size", most_of_squared, zero.prefetch_numel);
  zero.live_numel = builder.pick(in + "stage3_max_live_parameters", -1, zero.live_numel);
  zero.reuse_numel = builder.pick(in + "stage3_max_reuse_distance", -1, zero.reuse_numel);
  warn_stage(builder, in + "reduce_bucket_size", 2, "gradients are reduced once per step");
  for (const char* key :
       {"stage3_param_persistence_threshold", "stage3_model_persistence_threshold",
        "stage3_prefetch_bucket_size", "stage3_max_live_parameters", "stage3_max_reuse_distance"}) {
    warn_stage(builder, in + key, 3, "every rank has all parameters");
  }
}

/// Warns of offload keys without an offload device.
void warn_idle_offload(SettingsBuilder& builder, const std::string& in, bool has_device) {
  for (const char* key : {"nvme_path", "buffer_count", "buffer_size", "max_in_cpu", "ratio",
                          "pipeline_read", "pipeline_write"}) {
    if (!builder.config().has(in + key) || builder.config().is_auto(in + key)) continue;
    builder.add_warning(in + key, has_device
                                      ? "has no effect: the device is none"
                                      : "has no effect without \"device\": \"cpu\" or \"nvme\"");
    return;
  }
}

OffloadSettings resolve_offload(SettingsBuilder& builder,
                                std::string_view section,
                                std::string_view deprecated,
                                int lowest_stage) {
  const std::string in = fmt::format("zero_optimization.{}.", section);
  const std::string flag = fmt::format("zero_optimization.{}", deprecated);
  const bool old = builder.config().boolean(flag).value_or(false);
  OffloadSettings offload{.device = device_named(builder.pick(in + "device", old ? "cpu" : "none")),
                          .pin_memory = builder.pick(in + "pin_memory", true),
                          .pin_memory_given = builder.config().has(in + "pin_memory")};
  if (offload.device == OffloadSettings::Device::none) {
    warn_idle_offload(builder, in, builder.config().has(in + "device"));
    return offload;
  }
  const std::string named = old ? flag : in + "device";
  if (section == "offload_param" && lacks_stage(builder, lowest_stage)) {  // as in DeepSpeed
    warn_stage(builder, named, lowest_stage, "every rank has all parameters on its device");
    builder.decided_json(in + "device", "\"none\"", "derived");
    offload.device = OffloadSettings::Device::none;
    return offload;
  }
  if (offload.device == OffloadSettings::Device::nvme) lowest_stage = 3;
  if (lacks_stage(builder, lowest_stage)) {
    builder.add_problem(
        named, fmt::format("needs stage {}, but the stage is {}",
                           lowest_stage == 3 ? "3" : "1, 2 or 3", builder.settings().zero.stage));
  }
  if (offload.device == OffloadSettings::Device::nvme) {
    offload.nvme_path = builder.pick(in + "nvme_path", "");
    if (offload.nvme_path.empty() && !builder.config().is_faulty(in + "nvme_path")) {
      builder.add_problem(named, "needs nvme_path, a directory on a fast disk");
    }
  }
  return offload;
}

void resolve_swapped_optimizer(SettingsBuilder& builder) {
  OffloadSettings& offload = builder.settings().zero.offload_optimizer;
  const std::string in = "zero_optimization.offload_optimizer.";
  offload.buffer_count = static_cast<int>(builder.pick(in + "buffer_count", -1, 4));
  // DeepSpeed waits for the disk by default; results do not depend on it.
  offload.pipeline_read = builder.pick(in + "pipeline_read", true);
  offload.pipeline_write = builder.pick(in + "pipeline_write", true);
  // It costs nothing if no gradients are clipped and no steps skipped.
  const TrainSettings& settings = builder.settings();
  const bool whole = rules::is_layerwise(settings.optimizer.rule);
  const bool certain = settings.gradient_clipping == 0 && settings.max_skipped_steps == 0;
  offload.updates_early = builder.pick(super_offload, certain && !whole);
  if (offload.updates_early && whole) {
    offload.updates_early = false;
    builder.add_warning(super_offload,
                        fmt::format("has no effect: {} needs all gradients before it updates",
                                    rules::type_of(settings.optimizer.rule)));
  }
}

void resolve_swapped_parameters(SettingsBuilder& builder) {
  OffloadSettings& offload = builder.settings().zero.offload_param;
  const std::string in = "zero_optimization.offload_param.";
  offload.buffer_count = static_cast<int>(builder.pick(in + "buffer_count", -1, 5));
  offload.buffer_numel = builder.pick(in + "buffer_size", -1, 100'000'000);
  offload.in_cpu_numel = builder.pick(in + "max_in_cpu", -1, 1'000'000'000);
}

void resolve_offload(SettingsBuilder& builder) {
  ZeroSettings& zero = builder.settings().zero;
  zero.offload_optimizer = resolve_offload(builder, "offload_optimizer", "cpu_offload", 1);
  zero.offload_param = resolve_offload(builder, "offload_param", "cpu_offload_param", 3);
  if (zero.offload_optimizer.device == OffloadSettings::Device::nvme) {
    resolve_swapped_optimizer(builder);
  } else if (builder.config().boolean(super_offload).value_or(false)) {
    builder.add_warning(
        super_offload,
        "has no effect: only states on a disk are updated before the gradient norm is known");
  }
  if (zero.offload_param.device == OffloadSettings::Device::nvme)
    resolve_swapped_parameters(builder);
  constexpr std::string_view old_pin = "zero_optimization.cpu_offload_use_pin_memory";
  if (const std::optional<bool> pin = builder.config().boolean(old_pin)) {
    zero.offload_optimizer.pin_memory = *pin;
    zero.offload_optimizer.pin_memory_given = true;
  }
  zero.sub_group_numel = builder.pick("zero_optimization.sub_group_size", -1, zero.sub_group_numel);
  constexpr std::string_view ratio = "zero_optimization.offload_optimizer.ratio";
  zero.offload_optimizer.ratio = builder.pick(ratio, 1.0);
  if (zero.offload_optimizer.ratio < 1 && lacks_stage(builder, 3)) {
    builder.add_problem(ratio,
                        fmt::format("below 1 needs stage 3, but the stage is {}", zero.stage));
  }
}

}  // namespace

void resolve_zero(SettingsBuilder& builder) {
  resolve_stages(builder);
  resolve_offload(builder);
}

}  // namespace dstrain::config
