#include "zero/rank_shards.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/ops/convert.h"
#include "runtime/profile/recording.h"
#include "zero/shard_slices.h"

namespace dstrain::zero {
namespace {

/// Whether the host updates what a device keeps.
bool is_uploaded(const ShardPlan& plan, const SubGroup& sub_group) {
  return sub_group.tier != MemoryTier::device &&
         plan.segments[sub_group.segment].parameters == MemoryTier::device;
}

Bytes upload_bytes(const FlatLayout& layout, const ShardPlan& plan) {
  Bytes largest = 0;
  for (const SubGroup& sub_group : plan.sub_groups) {
    const Bytes bytes = sub_group.numel * size_of(layout.segment(sub_group.segment).dtype);
    if (is_uploaded(plan, sub_group)) largest = std::max(largest, bytes);
  }
  return largest;
}

}  // namespace

Bytes RankShards::staging_bytes(const FlatLayout& layout,
                                const ShardPlan& plan,
                                DeviceKind device) {
  return shares_host_memory(device) ? 0 : StagingRing::all_bytes(upload_bytes(layout, plan));
}

RankShards::RankShards(const FlatLayout& layout,
                       const ShardPlan::Options& options,
                       int rank,
                       Memory memory,
                       Streams streams,
                       profile::Timeline* timeline)
    : layout_(layout),
      options_(options),
      rank_(rank),
      plan_(layout, options),
      streams_(streams),
      timeline_(timeline),
      device_(layout, plan_, ResidentShards::Location::device, memory.device, streams.compute),
      host_(layout, plan_, ResidentShards::Location::host, memory.host, streams.compute) {
  if (plan_.parameters_in(MemoryTier::nvme) || plan_.states_in(MemoryTier::nvme)) {
    disk_.emplace(layout, plan_, options.offload, memory.disks, streams.compute);
  }
  const Bytes uploads = host_is_apart() ? upload_bytes(layout, plan_) : 0;
  if (uploads > 0) uploads_.emplace(uploads, memory.staging, streams.compute);
}

StreamView RankShards::stream_of(Device device) {
  if (device == streams_.compute.device()) return streams_.compute;
  return host_stream_;
}

void RankShards::synchronize() {
  streams_.compute.synchronize();
  host_stream_.synchronize();
}

StreamView RankShards::stream_of(const SubGroup& sub_group, LeaseUse use) {
  if (use == LeaseUse::update_early) return queue_stream_;
  return sub_group.tier == MemoryTier::device ? streams_.compute : stream_of(Device{});
}

TensorView RankShards::parameters(SegmentId segment) const {
  return resident(plan_.segments[segment].parameters).parameters(segment);
}

TensorView RankShards::own_parameters(SegmentId segment) const {
  return own_shard(layout_.segment(segment), rank_, parameters(segment));
}

TensorView RankShards::gradients(SegmentId segment) const {
  return resident(plan_.segments[segment].optimizer).gradients(segment);
}

RankShards::ParameterLease::ParameterLease(RankShards& shards, SegmentId segment, LeaseUse use)
    : shards_(&shards), segment_(segment), use_(use) {
  if (shards.plan_.segments[segment].parameters != MemoryTier::nvme) {
    values_ = shards.shards_updates() ? shards.own_parameters(segment) : shards.parameters(segment);
    return;
  }
  // A segment on a disk has its exact values among the states.
  if (use == LeaseUse::measure) return;
  DiskShards& disk = *shards.disk_;
  values_ =
      use == LeaseUse::read ? disk.take_parameters(segment) : disk.replace_parameters(segment);
  disk.wait_for_parameters(segment);
}

RankShards::ParameterLease::~ParameterLease() {
  if (shards_ == nullptr) return;
  try {
    give_back(false);
  } catch (const Error&) {  // of a read whose result is not needed any more
  }
}

void RankShards::ParameterLease::give_back() {
  give_back(changes_parameters(use_));
}

void RankShards::ParameterLease::give_back(bool changed) {
  RankShards& shards = *shards_.release();
  const SegmentShare& share = shards.plan_.segments[segment_];
  if (share.parameters != MemoryTier::nvme || use_ == LeaseUse::measure) return;
  // The stream of the device writes its updates.
  if (changed && share.optimizer == MemoryTier::device) shards.streams_.compute.synchronize();
  shards.disk_->release_parameters(segment_, changed);
}

RankShards::SubGroupLease RankShards::lend(SubGroupId id,
                                           const ParameterLease& parameters,
                                           TensorView gradients) {
  const SubGroup& sub_group = plan_.sub_groups[id];
  SubGroupLease lease(*this, id, parameters.use_, stream_of(sub_group, parameters.use_));
  if (!parameters.values().empty()) {
    lease.parameters = parameters.values().part(sub_group.offset, {sub_group.numel});
  }
  DiskShards::LoadedSubGroup values{resident(sub_group.tier).states(id), {}};
  if (sub_group.tier == MemoryTier::nvme) {
    values = lease.use_ == LeaseUse::update_early ? disk_->begin_early(id, gradients, lease.stream)
                                                  : disk_->acquire(id, lease.use_);
  }
  lease.gradients = values.gradients;
  lease.states = values.states.first(static_cast<std::size_t>(sub_group.states));
  const bool staged = uploads_ && is_uploaded(plan_, sub_group) && changes_parameters(lease.use_);
  if (staged) stage_parameters(lease);
  lease.exact = sub_group.master ? values.states.back() : lease.parameters;
  return lease;
}

/// The host gets a buffer in place of the device's parameters.
void RankShards::stage_parameters(SubGroupLease& lease) {
  lease.target_ = lease.parameters;
  lease.upload_ = &uploads_->next();
  if (lease.upload_->busy) lease.upload_->busy->wait_on(inline_);
  lease.parameters = lease.upload_->memory.cut(0, lease.target_.dtype(), lease.target_.shape());
}

RankShards::SubGroupLease::~SubGroupLease() {
  if (shards_ == nullptr) return;
  stream.wait_until_idle();
  try {
    shards_->return_sub_group(sub_group_, LeaseUse::read);
  } catch (const Error&) {  // of a read whose result is not needed any more
  }
}

void RankShards::SubGroupLease::give_back() {
  RankShards& shards = *shards_.release();
  if (upload_ != nullptr) {
    const StreamView uploads = shards.streams_.transfers;
    {
      const profile::Recording recording(profile::beside_device(shards.timeline_), uploads,
                                         profile::Lane::transfers, profile::Activity::copy,
                                         target_.bytes());
      ops::convert(parameters, target_, uploads);
    }
    upload_->busy = Event::record(uploads);
  }
  if (shards.plan_.sub_groups[sub_group_].tier == MemoryTier::nvme) stream.synchronize();
  shards.return_sub_group(sub_group_, use_);
}

/// Call after the work with it is done.
void RankShards::return_sub_group(SubGroupId sub_group, LeaseUse use) {
  if (plan_.sub_groups[sub_group].tier != MemoryTier::nvme) return;
  use == LeaseUse::update_early ? disk_->end_early(sub_group) : disk_->release(sub_group, use);
}

void RankShards::follow_uploads() const {
  if (uploads_) Event::record(streams_.transfers).wait_on(streams_.compute);
}

}  // namespace dstrain::zero
