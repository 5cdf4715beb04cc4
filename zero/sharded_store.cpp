#include "zero/sharded_store.h"

#include <cmath>

#include "runtime/comm/gather_values.h"
#include "runtime/ops/convert.h"
#include "runtime/optim/gradient_norm.h"
#include "zero/sharded_gradients.h"
#include "zero/whole_gradients.h"

namespace dstrain::zero {
namespace {

using profile::Activity;
using profile::Lane;
using profile::Recording;

std::unique_ptr<GradientReducer> make_reducer(const ShardedStore::Parts& parts,
                                              const ShardedStore::Options& options,
                                              std::span<const MemoryTier> homes,
                                              Communication communication,
                                              StreamView stream) {
  if (parts.optimizer == nullptr) return nullptr;
  const StagePolicy policy = stage_policy(options.stage);
  const ShardedStore::Memory& memory = parts.memory;
  if (policy.shard_gradients) {
    return std::make_unique<ShardedGradients>(
        parts.layout,
        ShardedGradients::Options{options.reduce_bucket_numel, options.overlap.enabled, homes,
                                  memory.gradient_sink},
        communication,
        ShardedGradients::Memory{memory.gradients, memory.offloaded_gradients, memory.buffers},
        stream);
  }
  const auto result =
      policy.shard_optimizer ? WholeGradients::Result::own_shard : WholeGradients::Result::whole;
  return std::make_unique<WholeGradients>(
      parts.layout, result, homes, communication,
      WholeGradients::Memory{memory.gradients, memory.offloaded_gradients}, stream);
}

std::vector<StateRun> make_runs(const ShardedStore::Parts& parts,
                                const ShardedStore::Options& options) {
  if (parts.optimizer == nullptr) return {};
  return state_runs(parts.layout,
                    {options.stage, std::ssize(parts.optimizer->state_names()), options.offload});
}

}  // namespace

ShardedStore::ShardedStore(Parts parts, Options options, Streams streams)
    : parts_(parts),
      communication_(parts.communicator, streams, parts.timeline),
      runs_(make_runs(parts, options)),
      gradient_homes_(optimizer_homes(parts.layout, options.offload)),
      parameters_(parts.layout,
                  {stage_policy(options.stage), options.overlap, options.offload},
                  communication_,
                  {parts.memory.parameters, parts.memory.offloaded_parameters, parts.memory.buffers,
                   parts.memory.parameter_disk},
                  streams.compute),
      gradients_(make_reducer(parts, options, gradient_homes_, communication_, streams.compute)) {
  DSTRAIN_CHECK(options.overlap.enabled || !streams.overlap(), "two streams without overlap");
}

void ShardedStore::expect(std::span<const int> parts, std::int64_t rounds) {
  parameters_.expect(parts, rounds);
}

std::span<const TensorView> ShardedStore::acquire(int part, StreamView stream) {
  DSTRAIN_CHECK(lease(part) == nothing, "part {} is still in use", lease(part));
  lease(part) = part;
  return parameters_.acquire(part, stream);
}

void ShardedStore::release(int part, StreamView /*stream*/) {
  DSTRAIN_CHECK(lease(part) == part, "part {} is in use, not {}", lease(part), part);
  parameters_.release(part);
  lease(part) = nothing;
}

void ShardedStore::begin(engine::MicroStep micro_step) {
  gradients_->begin(micro_step);
}

std::span<const model::GradientTarget> ShardedStore::gradients(int part, StreamView stream) {
  return gradients_->targets(part, stream);
}

void ShardedStore::reduce(int part, StreamView stream) {
  gradients_->reduce(part, stream);
}

double ShardedStore::gradient_norm(StreamView stream) {
  communication_.synchronize();
  stream.synchronize();
  optim::ExactSum own;
  for (int index = 0; index < static_cast<int>(parts_.layout.segments().size()); ++index) {
    const Recording recording(parts_.timeline, Lane::compute, Activity::norm, index);
    optim::add_squares(gradients_->own(index), own);
  }
  if (parts_.memory.gradient_sink != nullptr) own.add(parts_.memory.gradient_sink->squares());
  optim::ExactSum total;
  for (const optim::ExactSum& part :
       comm::gather_values(own, parts_.communicator, communication_.stream())) {
    total.add(part);
  }
  return std::sqrt(total.value());
}

void ShardedStore::step(const optim::StepScalars& scalars, StreamView stream) {
  const Recording recording(parts_.timeline, Lane::compute, Activity::optimizer_step);
  for (std::size_t run = 0; run < runs_.size(); ++run) {
    update(static_cast<int>(run), scalars, stream);
    if (completes_segment(run)) parameters_.publish(runs_[run].segment, stream);
  }
  communication_.synchronize();
}

void ShardedStore::update(int index, const optim::StepScalars& scalars, StreamView stream) {
  const StateRun& run = runs_[static_cast<std::size_t>(index)];
  profile::Timeline* const waits = run.home == MemoryTier::nvme ? parts_.timeline : nullptr;
  engine::StateLease lease;
  TensorView parameters;
  {
    const Recording waiting(waits, Lane::compute, Activity::wait);
    lease = parts_.states->acquire(index, engine::StateUse::update, stream);
    parameters = hold(run, true);
  }
  {
    const Recording recording(parts_.timeline, Lane::compute, Activity::update, run.segment);
    apply(run, lease, parameters, scalars, stream);
  }
  const Recording waiting(waits, Lane::compute, Activity::wait);
  parts_.states->release(index, engine::StateUse::update, stream);
}

void ShardedStore::apply(const StateRun& run,
                         const engine::StateLease& lease,
                         TensorView parameters,
                         const optim::StepScalars& scalars,
                         StreamView stream) {
  const auto& [states, with_states] = lease;
  optim::OptimizerShard shard{.parameters = run.master ? states.back() : parameters.as<float>(),
                              .gradients = with_states.empty() ? gradients_of(run) : with_states,
                              .states = states.first(parts_.optimizer->state_names().size())};
  if (parameters.dtype() == DType::bf16) shard.working = parameters.as<BFloat16>();
  parts_.optimizer->step(shard, scalars, stream);
  if (run.master && parameters.dtype() == DType::f32) {
    stream.launch([from = TensorView(states.back(), {run.numel}), parameters] {
      ops::convert(from, parameters);
    });
  }
}

/// The parameters, as units see them, that the run updates.
TensorView ShardedStore::hold(const StateRun& run, bool replaced) {
  return parameters_.hold(run.segment, replaced).part(run.offset, {run.numel});
}

std::span<const float> ShardedStore::gradients_of(const StateRun& run) const {
  DSTRAIN_CHECK(run.home != MemoryTier::nvme, "segment {}'s gradients are on a disk", run.segment);
  return gradients_->updated(run.segment)
      .subspan(static_cast<std::size_t>(run.offset), static_cast<std::size_t>(run.numel));
}

bool ShardedStore::completes_segment(std::size_t run) const {
  return run + 1 == runs_.size() || runs_[run + 1].segment != runs_[run].segment;
}

}  // namespace dstrain::zero
