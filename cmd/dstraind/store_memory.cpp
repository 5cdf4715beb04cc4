#include "cmd/dstraind/store_memory.h"

namespace dstrain::cmd {

zero::ShardedStore::Memory store_memory(RankMemory& memory,
                                        const zero::Offload& offload,
                                        const RankDisks& disks) {
  const bool to_disk = offload.parameters == MemoryTier::nvme;
  TierMemory& parameters = memory.of(to_disk ? offload.staging : offload.parameters);
  TierMemory& optimizer = memory.of(offload.optimizer);
  const zero::RankShards::Memory shards{
      .device = {memory.device.parameters, memory.device.gradients, memory.device.optimizer},
      .host = {parameters.parameters, optimizer.gradients, optimizer.optimizer},
      .staging = memory.of(offload.staging).buffers,
      .disks = {disks.parameters(), disks.optimizer()}};
  return {shards, memory.device.buffers};
}

}  // namespace dstrain::cmd
