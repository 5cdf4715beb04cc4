#include "runtime/session/offload_setup.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/device/locked_memory.h"
#include "zero/shard_plan.h"

namespace dstrain::session {
namespace {

MemoryTier tier_of(const config::OffloadSettings& settings) {
  using Device = config::OffloadSettings::Device;
  if (settings.device == Device::none) return MemoryTier::device;
  if (settings.device == Device::nvme) return MemoryTier::nvme;
  return settings.pin_memory ? MemoryTier::pinned : MemoryTier::host;
}

/// Of what swaps; what does not has none, and nothing against it.
bool pins_buffers(const config::OffloadSettings& settings) {
  return tier_of(settings) != MemoryTier::nvme || settings.pin_memory;
}

void unpin(MemoryTier& tier) {
  if (tier == MemoryTier::pinned) tier = MemoryTier::host;
}

void update_early(zero::Offload& offload, const config::TrainSettings& settings) {
  if (settings.gradient_clipping > 0 || settings.max_skipped_steps > 0) {
    offload.early = zero::EarlyUpdate::revocable;
    offload.optimizer_buffers = std::max(offload.optimizer_buffers, 2);
  } else {
    offload.early = zero::EarlyUpdate::irrevocable;
    offload.keeps_gradients = settings.accumulation_steps > 1;
  }
}

}  // namespace

zero::Offload offload_of(const config::TrainSettings& settings) {
  const config::OffloadSettings& optimizer = settings.zero.offload_optimizer;
  const config::OffloadSettings& parameters = settings.zero.offload_param;
  zero::Offload offload{.optimizer = tier_of(optimizer),
                        .optimizer_ratio = optimizer.ratio,
                        .parameters = tier_of(parameters)};
  offload.sub_group_numel =
      std::clamp<std::int64_t>(round_up(settings.zero.sub_group_numel, zero::layout_alignment),
                               zero::layout_alignment, offload.sub_group_numel);
  offload.read_ahead = optimizer.pipeline_read;
  offload.write_behind = optimizer.pipeline_write;
  if (offload.optimizer == MemoryTier::nvme) {
    offload.optimizer_buffers = optimizer.buffer_count;
    if (optimizer.updates_early) update_early(offload, settings);
  }
  if (offload.parameters == MemoryTier::nvme) {
    offload.parameter_buffers = parameters.buffer_count;
    offload.parameters_in_host = parameters.in_cpu_numel;
  }
  if (pins_buffers(optimizer) && pins_buffers(parameters)) offload.staging = MemoryTier::pinned;
  return offload;
}

std::string describe_raise(const config::OffloadSettings& parameters,
                           const zero::Offload& offload,
                           const zero::FlatLayout& layout) {
  const auto tiers = zero::parameter_tiers(layout, offload);
  std::int64_t largest = 0;
  for (const zero::SegmentId segment : tiers.ids()) {
    if (tiers[segment] != MemoryTier::nvme) continue;
    largest = std::max(largest, layout.segment(segment).shard_numel);
  }
  if (largest <= parameters.buffer_numel) return "";
  return fmt::format("offload_param.buffer_size: {} is raised to {} elements, the largest share",
                     parameters.buffer_numel, largest);
}

const char* offload_device(MemoryTier tier) {
  return tier == MemoryTier::device ? "none" : tier == MemoryTier::nvme ? "nvme" : "cpu";
}

zero::Offload unpin(const zero::Offload& offload,
                    const config::ZeroSettings& settings,
                    std::vector<std::string>& warnings) {
  for (const config::OffloadSettings& part : {settings.offload_optimizer, settings.offload_param}) {
    if (tier_of(part) == MemoryTier::device || !part.pin_memory || !part.pin_memory_given) continue;
    warnings.push_back(fmt::format(
        "pin_memory: this user may lock {} of memory and the run offloads more; it goes "
        "on with memory that is not locked (ulimit -l raises the limit)",
        format_bytes(LockedMemory::allowed())));
    break;
  }
  zero::Offload unpinned = offload;
  unpin(unpinned.optimizer);
  unpin(unpinned.parameters);
  unpin(unpinned.staging);
  return unpinned;
}

}  // namespace dstrain::session
