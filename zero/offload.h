#pragma once
#include <cstdint>

#include "runtime/device/memory_resource.h"

namespace dstrain::zero {

/// Whether sub-groups on a disk are updated as soon as their gradients are summed, during the rest
/// of backward, or only once the norm of all gradients is known.
enum class EarlyUpdate : std::uint8_t {
  off,
  irrevocable,  ///< cannot be undone, so gradients are not clipped
  revocable,    ///< the old states are kept until then, in a second record on the disk
};

/// Records on the disk for each sub-group.
constexpr int records_per_sub_group(EarlyUpdate early) {
  return early == EarlyUpdate::revocable ? 2 : 1;
}

/// Which states and parameters a rank keeps outside its device, and where. They are copied back and
/// forth as needed, and no result depends on it.
struct Offload {
  /// Tier of the optimizer's states, the f32 masters and the summed gradients. If it is not the
  /// device, the host updates them. Needs a stage that shards them; nvme needs stage 3.
  MemoryTier optimizer = MemoryTier::device;
  /// The share of elements that is offloaded, in whole segments; the others stay on the device
  /// (ZeRO-Offload++ Twin-Flow).
  double optimizer_ratio = 1;
  /// Tier of the parameter shards of stage 3, except persistent segments.
  MemoryTier parameters = MemoryTier::device;

  /// Most elements that the host updates in one call (DeepSpeed's sub_group_size).
  std::int64_t sub_group_numel = std::int64_t{1} << 22;
  /// Tier of the buffers between device, host and disk.
  MemoryTier staging = MemoryTier::host;

  // With nvme:
  int optimizer_buffers = 4;             ///< each for the gradients and states of one sub-group
  bool read_ahead = true;                ///< reads the next sub-group while one is updated
  bool write_behind = true;              ///< writes the last sub-group while one is updated
  EarlyUpdate early = EarlyUpdate::off;  ///< revocable needs two buffers or more
  /// Gradients are kept beside the states; not needed if irrevocable with one micro step.
  bool keeps_gradients = true;
  int parameter_buffers = 5;            ///< each for one segment's shard
  std::int64_t parameters_in_host = 0;  ///< elements of the shards that stay in `staging`
};

constexpr bool updates_early(const Offload& offload) {
  return offload.early != EarlyUpdate::off;
}

constexpr bool on_host(MemoryTier tier) {
  return tier == MemoryTier::host || tier == MemoryTier::pinned;
}

}  // namespace dstrain::zero
