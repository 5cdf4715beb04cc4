#pragma once
#include <vector>

#include "runtime/device/memory_resource.h"
#include "runtime/engine/frame.h"
#include "runtime/engine/frame_copies.h"
#include "runtime/engine/parameter_store.h"
#include "runtime/model/model.h"
#include "runtime/profile/timeline.h"
#include "runtime/rank/progress_page.h"

namespace dstrain::engine {

/// What the units of a model run on.
struct EngineInputs {
  const model::Model& model;
  ParameterStore& store;
  MemoryResource& activations;
  MemoryResource& host_activations;       ///< also for other transfers between host and device
  profile::Timeline* timeline = nullptr;  ///< null: nothing is recorded
  ProgressPage* progress = nullptr;       ///< null: nothing is published
};

/// Runs the calls of frames over a parameter store. All of `inputs` must outlive it.
class FrameRunner {
 public:
  FrameRunner(const EngineInputs& inputs, StreamView stream);

  /// Returns the parts that the calls of a frame acquire, in order.
  [[nodiscard]] std::vector<model::PartId> parts_of(const Frame& frame) const;
  struct Beside {
    FrameCopies* copies = nullptr;               ///< of the frame's activations; null: none
    std::span<const model::CacheCall> caches{};  ///< per unit; empty: none
  };
  /// Runs a frame. `call` has what its calls share: the batch, its shape and the keys of dropout.
  /// Asynchronous on the stream.
  void run(const Frame& frame, const model::UnitCall& call, const Beside& beside) const;
  /// Acquires and releases the parts of a frame, on a rank that has nothing to run when others
  /// have.
  void pass(std::span<const model::PartId> parts) const;

 private:
  void run_call(const FrameCall& call, model::UnitCall arguments) const;

  EngineInputs inputs_;
  StreamView stream_;
  std::vector<model::PartId> own_part_;  ///< per unit: the part without its tiles
};

}  // namespace dstrain::engine
