#pragma once
#include "cmd/dstraind/rank_disks.h"
#include "cmd/dstraind/rank_memory.h"
#include "zero/sharded_store.h"

namespace dstrain::cmd {

/// From where a store takes what it keeps in each tier. All must outlive the store.
zero::ShardedStore::Memory store_memory(RankMemory& memory,
                                        const zero::Offload& offload,
                                        const RankDisks& disks);

}  // namespace dstrain::cmd
