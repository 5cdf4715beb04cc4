// The sections offload_optimizer and offload_param, and the keys that they replace.
#include <fmt/format.h>

#include "runtime/config/resolver.h"

namespace dstrain::config {
namespace {

constexpr std::string_view super_offload = "zero_optimization.offload_optimizer.super_offload";

OffloadSettings::Device device_named(std::string_view name) {
  if (name == "cpu") return OffloadSettings::Device::cpu;
  return name == "nvme" ? OffloadSettings::Device::nvme : OffloadSettings::Device::none;
}

}  // namespace

OffloadSettings Resolver::resolve_offload(std::string_view section,
                                          std::string_view deprecated,
                                          int lowest_stage) {
  const std::string in = fmt::format("zero_optimization.{}.", section);
  const std::string flag = fmt::format("zero_optimization.{}", deprecated);
  const bool old = config_.boolean(flag).value_or(false);
  OffloadSettings offload{.device = device_named(pick(in + "device", old ? "cpu" : "none")),
                          .pin_memory = pick(in + "pin_memory", true),
                          .pin_memory_given = config_.has(in + "pin_memory")};
  if (offload.device == OffloadSettings::Device::none) {
    warn_idle_offload(in, config_.has(in + "device"));
    return offload;
  }
  const std::string& named = old ? flag : in + "device";
  if (offload.device == OffloadSettings::Device::nvme) lowest_stage = 3;
  if (lacks_stage(lowest_stage)) {
    problems_.add(config_.position(named), named,
                  fmt::format("needs stage {}, and the stage is {}",
                              lowest_stage == 3 ? "3" : "1, 2 or 3", result_.settings.zero.stage));
  }
  if (offload.device == OffloadSettings::Device::nvme) {
    offload.nvme_path = pick(in + "nvme_path", "");
    if (offload.nvme_path.empty() && !config_.is_faulty(in + "nvme_path")) {
      problems_.add(config_.position(named), named,
                    "needs nvme_path beside it, a directory on a fast disk");
    }
  }
  return offload;
}

/// What is said of a place that is not taken.
void Resolver::warn_idle_offload(const std::string& in, bool has_device) {
  for (const char* key : {"nvme_path", "buffer_count", "buffer_size", "max_in_cpu", "ratio",
                          "pipeline_read", "pipeline_write"}) {
    if (!config_.has(in + key) || config_.is_auto(in + key)) continue;
    problems_.warn(config_.position(in + key), in + key,
                   has_device ? "has no effect: the device is none"
                              : "has no effect without device beside it: \"cpu\" or \"nvme\"");
    return;
  }
}

void Resolver::resolve_offload() {
  ZeroSettings& zero = result_.settings.zero;
  zero.offload_optimizer = resolve_offload("offload_optimizer", "cpu_offload", 1);
  zero.offload_param = resolve_offload("offload_param", "cpu_offload_param", 3);
  if (zero.offload_optimizer.device == OffloadSettings::Device::nvme) {
    resolve_swapped_optimizer();
  } else if (config_.boolean(super_offload).value_or(false)) {
    problems_.warn(config_.position(super_offload), super_offload,
                   "only states on a disk are updated before the norm of the gradients is known: "
                   "in memory nothing would be gained");
  }
  if (zero.offload_param.device == OffloadSettings::Device::nvme) resolve_swapped_parameters();
  constexpr std::string_view old_pin = "zero_optimization.cpu_offload_use_pin_memory";
  if (const std::optional<bool> pin = config_.boolean(old_pin)) {
    zero.offload_optimizer.pin_memory = *pin;
    zero.offload_optimizer.pin_memory_given = true;
  }
  zero.sub_group_numel = pick("zero_optimization.sub_group_size", -1, zero.sub_group_numel);
  constexpr std::string_view ratio = "zero_optimization.offload_optimizer.ratio";
  zero.offload_optimizer.ratio = pick(ratio, 1.0);
  if (zero.offload_optimizer.ratio < 1 && lacks_stage(3)) {
    problems_.add(config_.position(ratio), ratio,
                  fmt::format("below 1 needs stage 3, and the stage is {}", zero.stage));
  }
}

void Resolver::resolve_swapped_optimizer() {
  OffloadSettings& offload = result_.settings.zero.offload_optimizer;
  const std::string in = "zero_optimization.offload_optimizer.";
  offload.buffer_count = static_cast<int>(pick(in + "buffer_count", -1, 4));
  // DeepSpeed's default is to wait for the disk; no result depends on it.
  offload.pipeline_read = pick(in + "pipeline_read", true);
  offload.pipeline_write = pick(in + "pipeline_write", true);
  // Where nothing is clipped it costs nothing.
  offload.updates_early = pick(super_offload, result_.settings.gradient_clipping == 0);
}

void Resolver::resolve_swapped_parameters() {
  OffloadSettings& offload = result_.settings.zero.offload_param;
  const std::string in = "zero_optimization.offload_param.";
  offload.buffer_count = static_cast<int>(pick(in + "buffer_count", -1, 5));
  offload.buffer_numel = pick(in + "buffer_size", -1, 100'000'000);
  offload.in_cpu_numel = pick(in + "max_in_cpu", -1, 1'000'000'000);
}

}  // namespace dstrain::config
