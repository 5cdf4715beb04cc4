#include "zero/sharded_store.h"

#include "runtime/ops/convert.h"
#include "runtime/ops/fill_zero.h"
#include "runtime/ops/square_sum.h"
#include "runtime/profile/recording.h"
#include "zero/not_finite.h"
#include "zero/saved_states.h"
#include "zero/shard_loader.h"
#include "zero/sharded_gradients.h"
#include "zero/whole_gradients.h"

namespace dstrain::zero {
namespace {

using profile::Activity;
using profile::Lane;
using profile::Recording;

ShardPlan::Options plan_options(const ShardedStore::Inputs& inputs,
                                const ShardedStore::Options& options) {
  const optim::ParameterGroups* const groups = inputs.groups;
  return {.stage = options.stage,
          .optimizer_states = groups == nullptr ? 0 : std::ssize(groups->state_names()),
          .precision = options.precision,
          .trains = groups != nullptr,
          .offload = options.offload};
}

/// If a device computes, the host's cores are free.
HostQueue::Mode host_mode(const Streams& streams) {
  if (!streams.overlap()) return HostQueue::Mode::inline_on_caller;
  return shares_host_memory(streams.compute.device().kind) ? HostQueue::Mode::worker_thread
                                                           : HostQueue::Mode::compute_thread;
}

std::unique_ptr<OffloadedGradients> make_offloaded(const ShardedStore::Inputs& inputs,
                                                   EarlyUpdate mode,
                                                   RankShards& shards,
                                                   const SubGroupUpdates* updates,
                                                   const Communication& communication,
                                                   Streams streams) {
  if (!OffloadedGradients::needed(shards.plan(), streams.compute.device().kind)) return nullptr;
  return std::make_unique<OffloadedGradients>(
      OffloadedGradients::Inputs{shards, communication, *updates, inputs.memory.shards.staging,
                                 inputs.timeline},
      mode, streams);
}

std::unique_ptr<GradientReducer> make_reducer(const ShardedStore::Inputs& inputs,
                                              const ShardedStore::Options& options,
                                              RankShards& shards,
                                              const Communication& communication,
                                              OffloadedGradients* offloaded,
                                              StreamView stream) {
  if (inputs.groups == nullptr) return nullptr;
  const StagePolicy policy = stage_policy(options.stage);
  if (policy.shard_gradients) {
    return std::make_unique<ShardedGradients>(
        shards, ShardedGradients::Options{options.reduce_bucket_numel, options.overlap.enabled},
        communication, offloaded, inputs.memory.buffers, stream);
  }
  const auto result =
      policy.shard_optimizer ? WholeGradients::Result::own_shard : WholeGradients::Result::whole;
  return std::make_unique<WholeGradients>(
      shards, result, communication, offloaded,
      WholeGradients::Memory{inputs.memory.shards.device.gradients, inputs.memory.buffers}, stream);
}

std::unique_ptr<ParameterSums> make_sums(const ShardedStore::Inputs& inputs,
                                         RankShards& shards,
                                         const Communication& communication,
                                         StreamView stream) {
  if (inputs.groups == nullptr || inputs.groups->sums() == 0) return nullptr;
  return std::make_unique<ParameterSums>(
      shards, inputs.groups->sums(), communication,
      ParameterSums::Memory{inputs.memory.buffers, inputs.memory.shards.staging}, stream);
}

std::unique_ptr<SubGroupUpdates> make_updates(const ShardedStore::Inputs& inputs,
                                              const RankShards& shards,
                                              const ParameterSums* sums,
                                              StreamView stream) {
  if (inputs.groups == nullptr) return nullptr;
  return std::make_unique<SubGroupUpdates>(
      SubGroupUpdates::Inputs{shards, *inputs.groups, sums, inputs.memory.buffers,
                              inputs.memory.shards.staging},
      stream);
}

}  // namespace

ShardedStore::ShardedStore(const Inputs& inputs, const Options& options, Streams streams)
    : layout_(inputs.layout),
      groups_(inputs.groups),
      timeline_(inputs.timeline),
      host_(host_mode(streams)),
      communication_(inputs.communicator, streams, host_, inputs.timeline),
      shards_(inputs.layout,
              plan_options(inputs, options),
              inputs.communicator.rank(),
              inputs.memory.shards,
              streams,
              inputs.timeline),
      parameters_(shards_, options.overlap, communication_, inputs.memory.buffers, streams.compute),
      sums_(make_sums(inputs, shards_, communication_, streams.compute)),
      updates_(make_updates(inputs, shards_, sums_.get(), streams.compute)),
      offloaded_(make_offloaded(
          inputs, options.offload.early, shards_, updates_.get(), communication_, streams)),
      gradients_(make_reducer(
          inputs, options, shards_, communication_, offloaded_.get(), streams.compute)) {
  DSTRAIN_CHECK(options.overlap.enabled || !streams.overlap(), "two streams without overlap");
  DSTRAIN_CHECK(sums_ == nullptr || !updates_early(options.offload),
                "an optimizer that takes sums updates nothing early");
}

void ShardedStore::load(const engine::StateSources& sources, StreamView stream) {
  stream.synchronize();
  communication_.synchronize();
  ShardLoader loader(shards_, communication_, sources);
  for (const SegmentId segment : layout_.segments().ids()) {
    loader.load(segment);
    shards_.follow_uploads();
    parameters_.loaded(segment, stream);
  }
  communication_.synchronize();
}

std::vector<engine::SavedState> ShardedStore::saved_states() const {
  return zero::saved_states(groups_->state_names(), layout_.dtype(), shards_.plan().precision);
}

std::vector<engine::ParameterSlice> ShardedStore::saved_slices(int rank) const {
  return zero::saved_slices(layout_, rank);
}

void ShardedStore::copy_saved(engine::SaveTargetOf target_of) {
  zero::copy_saved(shards_, groups_->state_names().size(), target_of);
}

void ShardedStore::expect(std::span<const model::PartId> parts, std::int64_t rounds) {
  parameters_.expect(parts, rounds);
}

std::span<const TensorView> ShardedStore::acquire(model::PartId part, StreamView stream) {
  std::optional<model::PartId>& in_use = part_in_use(part);
  DSTRAIN_CHECK(!in_use, "part {} is still in use", to_int(*in_use));
  in_use = part;
  return parameters_.acquire(part, stream);
}

void ShardedStore::release(model::PartId part, StreamView /*stream*/) {
  std::optional<model::PartId>& in_use = part_in_use(part);
  DSTRAIN_CHECK(in_use == part, "part {} is released but not in use", to_int(part));
  parameters_.release(part);
  in_use.reset();
}

std::span<const rules::ScalarValues> ShardedStore::begin_step(const optim::StepScalars& scalars) {
  scalars_ = groups_->scalars(scalars.update);
  decision_ = {.gradient_scale = 1 / scalars.loss_scale};
  rounding_ = scalars.rounding;
  if (offloaded_) offloaded_->begin_step(host_tensors(), decision_.gradient_scale);
  return scalars_;
}

void ShardedStore::begin(engine::MicroStep micro_step) {
  gradients_->begin(micro_step);
}

std::span<const model::GradientTarget> ShardedStore::gradients(model::PartId part,
                                                               StreamView stream) {
  return gradients_->targets(part, stream);
}

void ShardedStore::reduce(model::PartId part, StreamView stream) {
  gradients_->reduce(part, stream);
}

bool ShardedStore::on_disk(SegmentId segment) const {
  return shards_.plan().segments[segment].optimizer == MemoryTier::nvme;
}

void ShardedStore::gather_totals(TensorView own, TensorView totals, StreamView stream) {
  communication_.join(stream);
  sum_squares(own.part(0, {ExactSum::numel}), stream);
  communication_.follow(stream);
  communication_.communicator().all_gather(own, totals, communication_.stream());
  communication_.join(stream);
}

/// The host first sums its own gradients.
void ShardedStore::sum_squares(TensorView sum, StreamView stream) {
  if (offloaded_) {
    communication_.synchronize();
    squares_ = shards_.disk() == nullptr ? ExactSum() : shards_.disk()->squares();
  }
  const auto add = [&](Device device, const TensorView& target) {
    ops::AddSquaresArgs squares{.values = {}, .sum = target};
    for (const SegmentId segment : layout_.segments().ids()) {
      const TensorView gradients = gradients_->own(segment);
      if (gradients.empty() || gradients.device() != device) continue;
      squares.values.push_back(gradients);
    }
    if (squares.values.empty()) return;
    const StreamView on = shards_.stream_of(device);
    const Recording recording(timeline_, on, Lane::compute, Activity::norm);
    ops::add_squares(squares, on);
  };
  if (offloaded_) {
    if (shards_.host_is_apart()) add(Device{}, ops::view_of(squares_));
    ops::convert(ops::view_of(squares_), sum, stream);
  } else {
    ops::fill_zero(sum, stream);  // needs no wait, unlike a copy from the host
  }
  add(stream.device(), sum);
}

optim::StepTensors ShardedStore::host_tensors() {
  constexpr std::int64_t numel = rules::scalar_numel;
  return {HostView(std::to_address(scalars_.begin()), DType::f32, {std::ssize(scalars_), numel}),
          ops::view_of(decision_), HostView(&rounding_, DType::i64, {1})};
}

void ShardedStore::step(const optim::StepTensors& step, StreamView stream) {
  const Recording recording(timeline_, stream, Lane::compute, Activity::optimizer_step);
  if (offloaded_) {
    ops::convert(step.decision, ops::view_of(decision_), stream);
    const Recording waiting(profile::beside_device(timeline_), Lane::host, Activity::wait);
    stream.synchronize();
  }
  const bool disk_is_done = offloaded_ && offloaded_->end_step(decision_);
  if (sums_) measure(step, stream);
  for (const SegmentId segment : layout_.segments().ids()) {
    if (!layout_.segment(segment).trainable) continue;
    if (!disk_is_done || !on_disk(segment)) pass_over(segment, LeaseUse::update, step);
    shards_.follow_uploads();
    parameters_.publish(segment, stream);
  }
  communication_.join(stream);
}

std::optional<std::string> ShardedStore::last_not_finite(TensorView sum) {
  communication_.synchronize();
  return zero::last_not_finite(shards_, *gradients_, sum);
}

void ShardedStore::measure(const optim::StepTensors& step, StreamView stream) {
  const auto measure_all = [&](bool of_device) {
    for (const SegmentId segment : layout_.segments().ids()) {
      const bool there = shards_.plan().segments[segment].optimizer == MemoryTier::device;
      const Segment& own = layout_.segment(segment);
      if (there != of_device || !own.trainable ||
          groups_->optimizer(own.parameter_group).sums() == 0)
        continue;
      pass_over(segment, LeaseUse::measure, step);
    }
  };
  sums_->clear(stream);
  measure_all(false);
  sums_->host_is_done(stream);
  measure_all(true);
  sums_->add_up(stream);
}

void ShardedStore::pass_over(SegmentId segment, LeaseUse pass, const optim::StepTensors& step) {
  const SegmentShare& share = shards_.plan().segments[segment];
  RankShards::ParameterLease parameters = [&] {
    const Recording waiting(on_disk(segment) ? timeline_ : nullptr, Lane::compute, Activity::wait);
    return shards_.lend(segment, pass);
  }();
  for (const SubGroupId sub_group : share.sub_groups) {
    pass_over_sub_group(sub_group, parameters, pass, step);
  }
  parameters.give_back();
}

void ShardedStore::pass_over_sub_group(SubGroupId id,
                                       const RankShards::ParameterLease& parameters,
                                       LeaseUse pass,
                                       const optim::StepTensors& step) {
  const SubGroup& sub_group = shards_.plan().sub_groups[id];
  profile::Timeline* const waits = on_disk(sub_group.segment) ? timeline_ : nullptr;
  RankShards::SubGroupLease lease = [&] {
    const Recording waiting(waits, Lane::compute, Activity::wait);
    return shards_.lend(id, parameters);
  }();
  if (sub_group.tier != MemoryTier::nvme) {
    lease.gradients =
        gradients_->updated(sub_group.segment).part(sub_group.offset, {sub_group.numel});
  }
  {
    const Recording recording(timeline_, lease.stream, Lane::compute, Activity::update,
                              to_int(sub_group.segment));
    const bool here = lease.stream.device() == step.decision.device();
    const optim::StepTensors own = here ? step : host_tensors();
    pass == LeaseUse::measure ? updates_->measure(id, lease, own)
                              : updates_->update(id, lease, own);
  }
  const Recording waiting(waits, Lane::compute, Activity::wait);
  lease.give_back();
}

}  // namespace dstrain::zero
