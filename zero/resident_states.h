#pragma once
#include <span>
#include <vector>

#include "runtime/engine/state_store.h"
#include "runtime/tensor/buffer.h"
#include "zero/state_runs.h"

namespace dstrain::zero {

/// Optimizer states that lie in memory, on the device or offloaded to the host. Of runs with
/// another home it has none.
class ResidentStates final : public engine::StateStore {
 public:
  struct Memory {
    MemoryResource& device;
    MemoryResource& offloaded;
  };
  ResidentStates(std::span<const StateRun> runs, Memory memory, StreamView stream);
  static Bytes bytes(std::span<const StateRun> runs, MemoryTier tier);

  engine::StateLease acquire(int run, engine::StateUse use, StreamView stream) override;
  void release(int /*run*/, engine::StateUse /*use*/, StreamView /*stream*/) override {}

 private:
  Buffer memory_;
  Buffer offloaded_;
  std::vector<std::vector<TensorView>> runs_;
};

}  // namespace dstrain::zero
