#include "zero/sharded_store.h"

#include <cmath>

#include "runtime/ops/convert.h"
#include "runtime/ops/fill_zero.h"
#include "runtime/ops/square_sum.h"
#include "zero/run_update.h"
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
                                              SwappedGradients* swapped,
                                              Communication communication,
                                              StreamView stream) {
  if (parts.optimizer == nullptr) return nullptr;
  const StagePolicy policy = stage_policy(options.stage);
  const ShardedStore::Memory& memory = parts.memory;
  if (policy.shard_gradients) {
    return std::make_unique<ShardedGradients>(
        parts.layout,
        ShardedGradients::Options{options.reduce_bucket_numel, options.overlap.enabled, homes,
                                  swapped},
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

std::unique_ptr<SwappedGradients> make_swapped_gradients(const ShardedStore::Parts& parts,
                                                         const ShardedStore::Options& options,
                                                         ParameterShards& parameters) {
  SwappedStates* const states = parts.memory.swapped_states;
  if (states == nullptr) return nullptr;
  return std::make_unique<SwappedGradients>(
      SwappedGradients::Parts{*states, parameters, *parts.optimizer, parts.timeline},
      options.offload.early);
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
      host_(streams.overlap() ? HostQueue::Mode::worker_thread : HostQueue::Mode::inline_on_caller),
      communication_(parts.communicator, streams, host_, parts.timeline),
      runs_(make_runs(parts, options)),
      gradient_homes_(optimizer_homes(parts.layout, options.offload)),
      parameters_(parts.layout,
                  {stage_policy(options.stage), options.overlap, options.offload},
                  communication_,
                  {parts.memory.parameters, parts.memory.offloaded_parameters, parts.memory.buffers,
                   parts.memory.parameter_disk},
                  streams.compute),
      swapped_(make_swapped_gradients(parts, options, parameters_)),
      gradients_(make_reducer(
          parts, options, gradient_homes_, swapped_.get(), communication_, streams.compute)) {
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

void ShardedStore::begin_step(const optim::StepScalars& foreseen) {
  if (swapped_) swapped_->begin_step(foreseen);
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

ExactSum ShardedStore::gradient_squares(TensorView sum, StreamView stream) {
  communication_.synchronize();
  stream.synchronize();
  ExactSum own;
  ops::fill_zero(sum, stream);
  for (int index = 0; index < static_cast<int>(parts_.layout.segments().size()); ++index) {
    const Recording recording(parts_.timeline, Lane::compute, Activity::norm, index);
    const TensorView gradients = gradients_->own(index);
    if (!gradients.empty()) ops::add_squares(gradients, sum, stream);
  }
  ops::convert(sum, ops::view_of(own), stream);
  stream.synchronize();
  if (swapped_) own.add(swapped_->squares());
  return own;
}

void ShardedStore::step(const optim::StepScalars& scalars, StreamView stream) {
  const Recording recording(parts_.timeline, Lane::compute, Activity::optimizer_step);
  const bool swapped_done = swapped_ && swapped_->end_step(scalars);
  for (std::size_t run = 0; run < runs_.size(); ++run) {
    const bool done = swapped_done && runs_[run].home == MemoryTier::nvme;
    if (!done) update(static_cast<int>(run), scalars, stream);
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
    parameters = parameters_.hold(run, true);
    if (run.home != MemoryTier::nvme) lease.gradients = gradients_of(run);
  }
  {
    const Recording recording(parts_.timeline, Lane::compute, Activity::update, run.segment);
    update_run(run, lease, parameters, *parts_.optimizer, scalars, stream);
  }
  const Recording waiting(waits, Lane::compute, Activity::wait);
  parts_.states->release(index, engine::StateUse::update, stream);
}

TensorView ShardedStore::gradients_of(const StateRun& run) const {
  return gradients_->updated(run.segment).part(run.offset, {run.numel});
}

bool ShardedStore::completes_segment(std::size_t run) const {
  return run + 1 == runs_.size() || runs_[run + 1].segment != runs_[run].segment;
}

}  // namespace dstrain::zero
