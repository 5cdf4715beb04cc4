#include "cmd/offload_setup.h"

#include <fmt/format.h>

#include "runtime/device/locked_memory.h"

namespace dstrain::cmd {
namespace {

MemoryTier tier_of(const config::OffloadSettings& settings) {
  using Device = config::OffloadSettings::Device;
  if (settings.device == Device::none) return MemoryTier::device;
  return settings.pin_memory ? MemoryTier::pinned : MemoryTier::host;
}

void unpin(MemoryTier& tier) {
  if (tier == MemoryTier::pinned) tier = MemoryTier::host;
}

}  // namespace

zero::Offload offload_of(const config::ZeroSettings& settings) {
  return {.optimizer = tier_of(settings.offload_optimizer),
          .optimizer_ratio = settings.offload_optimizer.ratio,
          .parameters = tier_of(settings.offload_param)};
}

const char* offload_device(MemoryTier tier) {
  return tier == MemoryTier::device ? "none" : tier == MemoryTier::nvme ? "nvme" : "cpu";
}

zero::Offload unpin(const zero::Offload& offload,
                    const config::ZeroSettings& settings,
                    std::vector<std::string>& warnings) {
  for (const config::OffloadSettings& part : {settings.offload_optimizer, settings.offload_param}) {
    if (tier_of(part) != MemoryTier::pinned || !part.pin_memory_given) continue;
    warnings.push_back(fmt::format(
        "pin_memory: this user may lock {} of memory and the run offloads more; it goes "
        "on with memory that is not locked (ulimit -l raises the limit)",
        format_bytes(LockedMemory::allowed())));
    break;
  }
  zero::Offload unpinned = offload;
  unpin(unpinned.optimizer);
  unpin(unpinned.parameters);
  return unpinned;
}

}  // namespace dstrain::cmd
