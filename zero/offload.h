#pragma once
#include <cstdint>

#include "runtime/device/memory_resource.h"

namespace dstrain::zero {

/// Whether what lies on a disk is updated as soon as its gradients are summed, beside the rest of
/// backward, instead of when the norm of all is known.
enum class EarlyUpdate : std::uint8_t {
  off,
  irrevocable,  ///< nothing can take it back: gradients are not clipped
  revocable,    ///< the old states are kept until then, in a second place on the disk
};

/// Of the disk, for what is updated.
constexpr int records_per_sub_group(EarlyUpdate early) {
  return early == EarlyUpdate::revocable ? 2 : 1;
}

/// Where a rank keeps what its device does not compute with just then. Whatever is not on the
/// device is offloaded: it comes and goes by copies, and no result depends on it.
struct Offload {
  /// The optimizer's states, the f32 masters and the gradients summed over ranks: they are updated
  /// by the host. Needs a stage that shards them; nvme needs stage 3.
  MemoryTier optimizer = MemoryTier::device;
  /// Share of the elements for which that holds, in whole segments; the others stay (ZeRO-Offload++
  /// Twin-Flow).
  double optimizer_ratio = 1;
  /// The shards of stage 3, but not the persistent segments.
  MemoryTier parameters = MemoryTier::device;

  /// Most elements that the host updates at once (DeepSpeed's sub_group_size).
  std::int64_t sub_group_numel = std::int64_t{1} << 22;
  /// Where the buffers lie through which values pass between a device, the host and a disk.
  MemoryTier staging = MemoryTier::host;

  // With nvme:
  int optimizer_buffers = 4;             ///< of one sub-group's gradients and states
  bool read_ahead = true;                ///< the next sub-group's, while one is updated
  bool write_behind = true;              ///< the last sub-group's, likewise
  EarlyUpdate early = EarlyUpdate::off;  ///< revocable: two buffers or more
  bool keeps_gradients = true;  ///< beside the states; not if irrevocable, in one micro step
  int parameter_buffers = 5;    ///< of one segment's shard
  std::int64_t parameters_in_host = 0;  ///< so many elements of the shards stay in `staging`
};

constexpr bool updates_early(const Offload& offload) {
  return offload.early != EarlyUpdate::off;
}

constexpr bool on_host(MemoryTier tier) {
  return tier == MemoryTier::host || tier == MemoryTier::pinned;
}

}  // namespace dstrain::zero
