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

/// Takes a rank's shards of the gradients, summed over the ranks, to where communication cannot put
/// them: to a disk, or from a device to the host. In a step that begins early (Offload::early)
/// what lies on a disk is updated as its gradients come, beside the rest of backward, and the
/// parameters with it: of a segment whose gradients are complete nothing is used any more. When the
/// norm is known the step is accepted, or, as gradients must be clipped, taken again from the old
/// states ("speculation-then-validation", Lian et al., SuperOffload, arXiv 2509.21271). A step
/// after one that was clipped is not begun early. All must outlive it. For the computing thread,
/// which hands the work to the host's queue of Communication.
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
  /// Whether there is something for it to do.
  static bool needed(const ShardPlan& plan, DeviceKind device);
  /// Of the host, for what comes from a device.
  static Bytes staging_bytes(const ShardPlan& plan, DeviceKind device);

  /// While nothing is under way: a step begins, or ends. `step`, of the host, stays until then,
  /// with the decision of a step that is taken and not clipped, in which gradients are multiplied
  /// with `unclipped_scale`.
  void begin_step(const optim::StepTensors& step, double unclipped_scale);
  /// Whether what was updated early counts; else a step is to be taken as if nothing had been.
  bool end_step(const ops::StepDecision& decision);

  /// What is taken from now on belongs to this micro step.
  void begin(engine::MicroStep micro_step);
  /// The reduction of a segment is about to be launched: waits for what take() will need.
  void announce(SegmentId segment);
  /// Takes `sum`, what was launched on the communication's stream so far leaves there, and adds it
  /// to what the micro steps before have left.
  void take(SegmentId segment, TensorView sum);
  /// The point from which on what was taken so far may be overwritten.
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
  std::optional<StagingRing> ring_;  ///< none where the host's memory is the device's
  bool clipped_ = true;              ///< the last step, or it is not known
  bool early_ = false;
  optim::StepTensors step_{};
  double unclipped_scale_ = 1;
  engine::MicroStep micro_step_;
  SharedLease announced_;
  // Of the queue's thread.
  CpuStream inline_{CpuStream::Mode::inline_on_caller};
  HostQueue here_{HostQueue::Mode::inline_on_caller};
};

}  // namespace dstrain::zero
