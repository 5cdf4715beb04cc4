#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "runtime/config/train_settings.h"
#include "runtime/engine/decoder.h"
#include "runtime/engine/engine.h"
#include "runtime/model/model.h"
#include "runtime/os/available_memory.h"
#include "zero/flat_layout.h"
#include "zero/memory_plan.h"
#include "zero/sharded_store.h"

namespace dstrain::session {

/// How the ranks of a training run hold its states and activations, and the memory that takes.
struct MemorySetup {
  std::unique_ptr<optim::ParameterGroups> groups;  ///< null: nothing is trained
  std::unique_ptr<zero::FlatLayout> layout;
  zero::ShardedStore::Options store;
  engine::Engine::Options engine;
  std::optional<engine::Decoder::Options>
      decoder{};  ///< of a run that generates, which has no engine
  zero::MemoryPlan plan;
  Bytes formula = 0;  ///< what the ZeRO paper's formula gives for the plan's model states
};

/// Of a run of resolved settings on `world` ranks, or of one that generates with a decoder. Where
/// host memory should be locked and may not be, it is not, and settings.warnings says so to those
/// who asked for it.
MemorySetup set_up_memory(config::TrainSettings& settings,
                          const model::Model& model,
                          int world,
                          const std::optional<engine::Decoder::Options>& decoder = {});

/// What there is of this machine's memory, and how far `ranks` ranks of it, planned alike, exceed
/// that: "2 ranks of this machine would need ... and ..."; nothing where they fit, or the kernel
/// does not say what there is. `budget`: what they may take together (--host_memory); 0: what is
/// available now.
std::optional<AvailableMemory> exceeded_memory(const zero::MemoryPlan& plan,
                                               int ranks,
                                               Bytes budget);

}  // namespace dstrain::session
