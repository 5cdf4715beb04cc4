#pragma once
#include "runtime/device/cpu_stream.h"
#include "runtime/engine/parameter_store.h"
#include "runtime/optim/optimizer.h"
#include "runtime/profile/timeline.h"
#include "zero/parameter_shards.h"
#include "zero/swapped_states.h"

namespace dstrain::zero {

/// Takes a rank's shards of the gradients, summed over the ranks, to states that lie on a disk. In
/// a step that begins early (Offload::early) these are updated as their gradients come, beside the
/// rest of backward, and the parameters with them: of a segment whose gradients are complete
/// nothing is used any more. When the norm is known the step is accepted, or, as gradients must be
/// clipped, taken again from the old states ("speculation-then-validation", Lian et al.,
/// SuperOffload, arXiv 2509.21271). A step after one that was clipped is not begun early. All must
/// outlive it.
class SwappedGradients final {
 public:
  struct Parts {
    SwappedStates& states;
    ParameterShards& parameters;
    const optim::Optimizer& optimizer;
    profile::Timeline* timeline = nullptr;  ///< null: nothing is recorded
  };
  SwappedGradients(Parts parts, EarlyUpdate mode) : parts_(parts), mode_(mode) {}

  /// For the computing thread, while nothing is under way: a step begins, or ends.
  void begin_step(const optim::StepScalars& foreseen);
  /// Whether what was updated early counts; else a step is to be taken as if nothing had been.
  bool end_step(const optim::StepScalars& scalars);
  /// Of all that was put, once the last micro step is done.
  [[nodiscard]] const ExactSum& squares() const { return parts_.states.squares(); }

  /// A put() of the segment is about to be launched; also for the computing thread.
  void announce(int segment, engine::MicroStep micro_step);
  // For the host's queue of Communication:
  /// What is put from now on belongs to this micro step.
  void begin(engine::MicroStep micro_step);
  /// Takes the shard of a segment, and adds it to what the micro steps before have put there. The
  /// values may change once this returns. Throws Error{io}.
  void put(int segment, TensorView gradients);
  /// That put() is over, or will not come after a failure.
  void finish(int segment);

 private:
  void update(const StateRun& run, const engine::StateLease& lease);

  Parts parts_;
  EarlyUpdate mode_;
  bool clipped_ = true;  ///< the last step, or it is not known
  bool early_ = false;
  optim::StepScalars foreseen_;
  CpuStream inline_{CpuStream::Mode::inline_on_caller};  ///< of the thread that puts
};

}  // namespace dstrain::zero
