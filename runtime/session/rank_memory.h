#pragma once
#include <memory>

#include "runtime/backend/backend.h"
#include "runtime/device/memory_resource.h"

namespace dstrain::session {

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

/// All memory of a rank: of its device, and of the host. Communicators move `shared` without
/// staging, which is memory of the one or of the other, or of both where they are one.
struct RankMemory {
  RankMemory(Backend& backend, Bytes device_limit, MemoryResource& shared)
      : pinned_own(backend.pinned(own)),
        pinned_moved(backend.pinned(moved(own, shared))),
        device(ledger(MemoryTier::device),
               backend.memory(),
               moved(backend.memory(), shared),
               device_limit),
        host(ledger(MemoryTier::host), own, moved(own, shared), 0),
        pinned(ledger(MemoryTier::pinned), *pinned_own, *pinned_moved, 0) {}
  MemoryLedger& ledger(MemoryTier tier) { return ledgers.at(static_cast<std::size_t>(tier)); }
  /// Where what is offloaded to `tier` goes.
  TierMemory& of(MemoryTier tier) { return tier == MemoryTier::pinned ? pinned : host; }

  MemoryLedgers ledgers;
  HostMemory own;  ///< of the host
  std::unique_ptr<MemoryResource> pinned_own;
  std::unique_ptr<MemoryResource> pinned_moved;
  TierMemory device;
  TierMemory host;
  TierMemory pinned;

 private:
  static MemoryResource& moved(MemoryResource& own, MemoryResource& shared) {
    return shared.device() == own.device() ? shared : own;
  }
};

}  // namespace dstrain::session
