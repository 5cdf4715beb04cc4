#pragma once
#include "runtime/optim/optimizer.h"
#include "runtime/profile/timeline.h"
#include "zero/gradient_sink.h"
#include "zero/parameter_shards.h"
#include "zero/swapped_states.h"

namespace dstrain::zero {

/// Takes gradients to states that lie on a disk. In a step that begins early (Offload::early) these
/// are updated as their gradients come, beside the rest of backward, and the parameters with them:
/// of a segment whose gradients are complete nothing is used any more. When the norm is known the
/// step is accepted, or, as gradients must be clipped, taken again from the old states
/// ("speculation-then-validation", Lian et al., SuperOffload, arXiv 2509.21271). A step after one
/// that was clipped is not begun early. All must outlive it.
class EarlyUpdates final : public GradientSink {
 public:
  struct Parts {
    SwappedStates& states;
    ParameterShards& parameters;
    const optim::Optimizer& optimizer;
    profile::Timeline* timeline = nullptr;  ///< null: nothing is recorded
  };
  EarlyUpdates(Parts parts, std::span<const StateRun> runs, EarlyUpdate mode)
      : parts_(parts), runs_(runs.begin(), runs.end()), mode_(mode), clipped_(true) {}

  /// For the computing thread, while nothing is under way: a step begins, or ends.
  void begin_step(const optim::StepScalars& foreseen);
  /// Whether what was updated early counts; else a step is to be taken as if nothing had been.
  bool end_step(const optim::StepScalars& scalars);
  [[nodiscard]] const optim::ExactSum& squares() const { return parts_.states.squares(); }

  void begin(engine::MicroStep micro_step) override;
  void announce(int segment, engine::MicroStep micro_step) override;
  void put(int segment, std::span<const float> gradients) override;
  void finish(int segment) override;

 private:
  void update(const StateRun& run, const engine::StateLease& lease);

  Parts parts_;
  std::vector<StateRun> runs_;
  EarlyUpdate mode_;
  bool clipped_;  ///< the last step, or it is not known
  bool early_ = false;
  optim::StepScalars foreseen_;
  Stream inline_{Stream::Mode::inline_on_caller};  ///< of the thread that puts
};

}  // namespace dstrain::zero
