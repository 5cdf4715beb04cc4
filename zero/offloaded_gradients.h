#pragma once
#include <memory>
#include <optional>

#include "runtime/engine/parameter_store.h"
#include "runtime/ops/decide_step.h"
#include "runtime/profile/timeline.h"
#include "zero/communication.h"
#include "zero/rank_shards.h"
#include "zero/sub_group_updates.h"

namespace dstrain::zero {

/// Moves a rank's shards of the summed gradients to where collectives cannot put them: to a disk,
/// or from a device to the host. In a step that begins early (Offload::early), sub-groups on a disk
/// are updated as their gradients come, during the rest of backward. Their parameters are updated
/// too, since nothing reads a segment whose gradients are complete. Once the norm is known the step
/// is accepted or, if gradients must be clipped, repeated from the old states
/// ("speculation-then-validation", Lian et al., SuperOffload, arXiv 2509.21271). A step after a
/// clipped one is not begun early. All arguments must outlive it. For the computing thread, which
/// passes the work to the host queue of Communication.
class OffloadedGradients final {
 public:
  struct Inputs {
    RankShards& shards;
    Communication communication;
    const SubGroupUpdates& updates;
    MemoryResource& staging;
    profile::Timeline* timeline = nullptr;  ///< null: nothing is recorded
  };
  OffloadedGradients(const Inputs& inputs, EarlyUpdate mode, Streams streams);
  /// Whether a plan needs it.
  static bool needed(const ShardPlan& plan, DeviceKind device);
  /// Bytes of host memory for gradients that come from a device.
  static Bytes staging_bytes(const ShardPlan& plan, DeviceKind device);

  /// Begins a step, while no work is under way. `step` is in host memory and stays valid until
  /// end_step(). Its decision is that of a step that is taken and not clipped, whose gradients are
  /// multiplied by `unclipped_scale`.
  void begin_step(const optim::StepTensors& step, double unclipped_scale);
  /// Ends a step. Returns whether early updates count; if not, the step must be taken as if there
  /// were none.
  bool end_step(const ops::StepDecision& decision);

  /// Begins a micro step, to which later take() calls belong.
  void begin(engine::MicroStep micro_step);
  /// Call before launching the reduction of a segment: waits for what take() will need.
  void announce(SegmentId segment);
  /// Adds `sum`, which the communication stream writes, to the gradients of earlier micro steps.
  void take(SegmentId segment, TensorView sum);
  /// The point after which everything taken so far may be overwritten.
  [[nodiscard]] Communication::Point taken() const;

 private:
  using SharedLease = std::shared_ptr<RankShards::ParameterLease>;
  [[nodiscard]] bool updates_early(SegmentId segment) const;
  struct Download {
    HostView values;
    Event done;
  };
  [[nodiscard]] Download start_download(SubGroupId id, const TensorView& sum);
  /// The sub-group's elements of a shard's values.
  [[nodiscard]] TensorView sub_group_of(const TensorView& shard, SubGroupId id) const;
  template <class Accept>
  void download(const SegmentShare& share, const TensorView& sum, const Accept& accept);
  void put(SubGroupId id, TensorView gradients, engine::MicroStep micro_step);
  void update(SubGroupId id, TensorView gradients, const RankShards::ParameterLease& parameters);

  RankShards& shards_;
  Communication communication_;
  const SubGroupUpdates& updates_;
  profile::Timeline* timeline_;
  EarlyUpdate mode_;
  StreamView transfers_;
  std::optional<StagingRing> ring_;  ///< none if the host's memory is the device's
  bool clipped_ = true;              ///< the last step was, or is not known
  bool early_ = false;
  optim::StepTensors step_{};
  double unclipped_scale_ = 1;
  engine::MicroStep micro_step_;
  SharedLease announced_;
  // Used by the thread of the queue:
  CpuStream inline_{CpuStream::Mode::inline_on_caller};
  HostQueue here_{HostQueue::Mode::inline_on_caller};
};

}  // namespace dstrain::zero
