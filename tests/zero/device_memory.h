#pragma once
#include "runtime/device/memory_resource.h"
#include "zero/sharded_store.h"

namespace dstrain::test {

/// Memory of a rank, counted by category.
struct DeviceMemory {
  HostMemory host;
  MemoryLedger ledger;
  TrackedMemory parameters{host, ledger, {MemoryCategory::parameters}};
  TrackedMemory gradients{host, ledger, {MemoryCategory::gradients}};
  TrackedMemory optimizer{host, ledger, {MemoryCategory::optimizer}};
  TrackedMemory activations{host, ledger, {MemoryCategory::activations}};
  TrackedMemory buffers{host, ledger, {MemoryCategory::buffers}};

  zero::ShardedStore::Memory of_store() { return {parameters, gradients, buffers}; }
};

}  // namespace dstrain::test
