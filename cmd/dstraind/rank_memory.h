#pragma once
#include "runtime/device/locked_memory.h"
#include "runtime/device/memory_resource.h"

namespace dstrain::cmd {

/// A rank's memory in one tier, counted by category and bounded by `limit` (0: not). What
/// collectives move is taken from `moved`, where they need not stage it.
struct TierMemory {
  TierMemory(MemoryLedger& ledger, MemoryResource& own, MemoryResource& moved, Bytes limit)
      : parameters(moved, ledger, {MemoryCategory::parameters, limit}),
        gradients(moved, ledger, {MemoryCategory::gradients, limit}),
        optimizer(own, ledger, {MemoryCategory::optimizer, limit}),
        activations(own, ledger, {MemoryCategory::activations, limit}),
        buffers(moved, ledger, {MemoryCategory::buffers, limit}),
        staging(own, ledger, {MemoryCategory::buffers, limit}) {}
  TrackedMemory parameters;
  TrackedMemory gradients;
  TrackedMemory optimizer;
  TrackedMemory activations;
  TrackedMemory buffers;
  TrackedMemory staging;  ///< buffers that no collective moves
};

/// All memory of a rank on the CPU device, where `shared` is what communicators move without
/// staging.
struct RankMemory {
  RankMemory(Bytes device_limit, MemoryResource& shared)
      : locked_shared(shared),
        device(ledger(MemoryTier::device), own, shared, device_limit),
        host(ledger(MemoryTier::host), own, shared, 0),
        pinned(ledger(MemoryTier::pinned), locked, locked_shared, 0) {}
  MemoryLedger& ledger(MemoryTier tier) { return ledgers.at(static_cast<std::size_t>(tier)); }
  /// Where what is offloaded to `tier` goes.
  TierMemory& of(MemoryTier tier) { return tier == MemoryTier::pinned ? pinned : host; }

  MemoryLedgers ledgers;
  HostMemory own;
  LockedMemory locked{own};
  LockedMemory locked_shared;
  TierMemory device;
  TierMemory host;
  TierMemory pinned;
};

}  // namespace dstrain::cmd
