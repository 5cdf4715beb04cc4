#pragma once
#include "tests/support/recording_memory.h"
#include "zero/sharded_store.h"

namespace dstrain::test {

/// Memory of a rank, counted by category: of the device, and of the host beside it.
struct DeviceMemory {
  DeviceMemory() : DeviceMemory(recorded) {}
  explicit DeviceMemory(MemoryResource& memory) : device(memory) {}

  RecordingMemory recorded;  ///< the device's, unless another is given
  MemoryResource& device;
  RecordingMemory host;
  MemoryLedger ledger;
  TrackedMemory parameters{device, ledger, {MemoryCategory::parameters}};
  TrackedMemory gradients{device, ledger, {MemoryCategory::gradients}};
  TrackedMemory optimizer{device, ledger, {MemoryCategory::optimizer}};
  TrackedMemory activations{device, ledger, {MemoryCategory::activations}};
  TrackedMemory buffers{device, ledger, {MemoryCategory::buffers}};

  MemoryLedger host_ledger;
  MemoryLedger disk_ledger;
  TrackedMemory host_parameters{host, host_ledger, {MemoryCategory::parameters}};
  TrackedMemory host_gradients{host, host_ledger, {MemoryCategory::gradients}};
  TrackedMemory host_optimizer{host, host_ledger, {MemoryCategory::optimizer}};
  TrackedMemory host_buffers{host, host_ledger, {MemoryCategory::buffers}};
  TrackedMemory host_activations{host, host_ledger, {MemoryCategory::activations}};

  zero::ShardedStore::Memory of_store(const zero::SwapFolder* disk = nullptr) {
    return {{{parameters, gradients, optimizer},
             {host_parameters, host_gradients, host_optimizer},
             host_buffers,
             {disk, disk}},
            buffers};
  }
};

}  // namespace dstrain::test
