#include "zero/offloaded_gradients.h"

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/ops/add.h"
#include "runtime/ops/convert.h"
#include "runtime/profile/recording.h"

namespace dstrain::zero {
namespace {

using engine::MicroStep;

Bytes download_bytes(const ShardPlan& plan) {
  std::int64_t largest = 0;
  for (const SubGroup& sub_group : plan.sub_groups) {
    const bool taken = sub_group.tier != MemoryTier::device && sub_group.states > 0;
    if (taken) largest = std::max(largest, sub_group.numel);
  }
  return largest * size_of(DType::f32);
}

}  // namespace

bool OffloadedGradients::needed(const ShardPlan& plan, DeviceKind device) {
  return plan.states_in(MemoryTier::nvme) ||
         (!shares_host_memory(device) && download_bytes(plan) > 0);
}

Bytes OffloadedGradients::staging_bytes(const ShardPlan& plan, DeviceKind device) {
  return shares_host_memory(device) ? 0 : StagingRing::all_bytes(download_bytes(plan));
}

OffloadedGradients::OffloadedGradients(const Inputs& inputs, EarlyUpdate mode, Streams streams)
    : shards_(inputs.shards),
      communication_(inputs.communication),
      updates_(inputs.updates),
      timeline_(inputs.timeline),
      mode_(mode),
      transfers_(streams.transfers) {
  if (shards_.host_is_apart()) {
    ring_.emplace(download_bytes(shards_.plan()), inputs.staging, streams.compute);
  }
}

void OffloadedGradients::begin_step(const optim::StepTensors& step, double unclipped_scale) {
  DSTRAIN_CHECK(!early_, "a step was begun early and not taken");
  step_ = step;
  unclipped_scale_ = unclipped_scale;
  early_ = mode_ == EarlyUpdate::irrevocable || (mode_ == EarlyUpdate::revocable && !clipped_);
}

bool OffloadedGradients::end_step(const ops::StepDecision& decision) {
  clipped_ = !decision.is_taken() || decision.gradient_scale != unclipped_scale_;
  if (!std::exchange(early_, false) || (clipped_ && mode_ == EarlyUpdate::revocable)) return false;
  shards_.disk()->accept();
  return true;
}

void OffloadedGradients::begin(MicroStep micro_step) {
  micro_step_ = micro_step;
  if (shards_.disk() == nullptr) return;
  communication_.host().run(
      [this, micro_step, early = early_] { shards_.disk()->begin(micro_step, early); });
}

bool OffloadedGradients::updates_early(SegmentId segment) const {
  return early_ && micro_step_.last() &&
         shards_.plan().segments[segment].optimizer == MemoryTier::nvme;
}

/// Waits for a buffer in the program's order, as gathers do: they need the same ones.
void OffloadedGradients::announce(SegmentId segment) {
  if (!updates_early(segment)) return;
  const profile::Recording waiting(timeline_, profile::Lane::compute, profile::Activity::wait);
  announced_ =
      std::make_shared<RankShards::ParameterLease>(shards_.lend(segment, LeaseUse::update_early));
}

/// The queue, not the caller, waits for the device and for its own buffers, so that the device is
/// given more to compute meanwhile.
void OffloadedGradients::take(SegmentId segment, TensorView sum) {
  const SegmentShare& share = shards_.plan().segments[segment];
  HostQueue& host = communication_.host();
  // With the last of its tasks the lease goes, also after a failure.
  const SharedLease parameters = std::exchange(announced_, nullptr);
  const auto accept = [this, parameters, micro_step = micro_step_](SubGroupId id,
                                                                   TensorView values) {
    parameters ? update(id, values, *parameters) : put(id, values, micro_step);
  };
  communication_.host_follows();
  if (ring_) {
    host.run([this, &share, sum, accept] { download(share, sum, accept); });
  } else {
    for (const SubGroupId id : share.sub_groups) {
      host.run([accept, id, values = sub_group_of(sum, id)] { accept(id, values); });
    }
  }
  if (parameters) host.run([parameters] { parameters->give_back(); });
}

/// One sub-group is copied while the one before it is added.
template <class Accept>
void OffloadedGradients::download(const SegmentShare& share,
                                  const TensorView& sum,
                                  const Accept& accept) {
  std::optional<Download> next;
  for (const SubGroupId id : share.sub_groups) {
    const Download download = next ? *next : start_download(id, sum);
    next.reset();
    if (id != share.sub_groups.back()) next = start_download(next_id(id), sum);
    download.done.wait_on(here_);
    accept(id, download.values);
  }
}

OffloadedGradients::Download OffloadedGradients::start_download(SubGroupId id,
                                                                const TensorView& sum) {
  const TensorView source = sub_group_of(sum, id);
  const HostView values = ring_->next().memory.cut(0, source.dtype(), source.shape());
  {
    const profile::Recording recording(profile::beside_device(timeline_), transfers_,
                                       profile::Lane::transfers, profile::Activity::copy,
                                       source.bytes());
    ops::convert(source, values, transfers_);
  }
  return {values, Event::record(transfers_)};
}

Communication::Point OffloadedGradients::taken() const {
  communication_.host_follows();
  return communication_.host_now();
}

TensorView OffloadedGradients::sub_group_of(const TensorView& shard, SubGroupId id) const {
  const SubGroup& sub_group = shards_.plan().sub_groups[id];
  return shard.part(sub_group.offset, {sub_group.numel});
}

void OffloadedGradients::put(SubGroupId id, TensorView gradients, MicroStep micro_step) {
  const SubGroup& sub_group = shards_.plan().sub_groups[id];
  if (sub_group.tier == MemoryTier::nvme) {
    shards_.disk()->add(id, gradients, inline_);
    return;
  }
  const TensorView sum = sub_group_of(shards_.gradients(sub_group.segment), id);
  micro_step.first() ? ops::convert(gradients, sum, inline_) : ops::add(gradients, sum, inline_);
}

void OffloadedGradients::update(SubGroupId id,
                                TensorView gradients,
                                const RankShards::ParameterLease& parameters) {
  RankShards::SubGroupLease lease = shards_.lend(id, parameters, gradients);
  {
    const profile::Recording recording(timeline_, profile::Lane::early_updates,
                                       profile::Activity::update,
                                       to_int(shards_.plan().sub_groups[id].segment));
    updates_.update(id, lease, step_);
  }
  lease.give_back();
}

}  // namespace dstrain::zero
