#include "zero/sharded_store.h"

#include <cmath>

#include "runtime/comm/gather_values.h"
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
                                              Communication communication,
                                              StreamView stream) {
  if (parts.optimizer == nullptr) return nullptr;
  const StagePolicy policy = stage_policy(options.stage);
  if (policy.shard_gradients) {
    return std::make_unique<ShardedGradients>(
        parts.layout,
        ShardedGradients::Options{options.reduce_bucket_numel, options.overlap.enabled},
        communication, ShardedGradients::Memory{parts.memory.gradients, parts.memory.buffers},
        stream);
  }
  const auto result =
      policy.shard_optimizer ? WholeGradients::Result::own_shard : WholeGradients::Result::whole;
  return std::make_unique<WholeGradients>(parts.layout, result, communication,
                                          parts.memory.gradients, stream);
}

}  // namespace

std::vector<std::int64_t> optimizer_runs(const FlatLayout& layout, int stage) {
  std::vector<std::int64_t> runs;
  for (const Segment& segment : layout.segments()) {
    runs.push_back(stage_policy(stage).shard_optimizer ? segment.shard_numel : segment.numel);
  }
  return runs;
}

ShardedStore::ShardedStore(Parts parts, Options options, Streams streams)
    : parts_(parts),
      communication_(parts.communicator, streams, parts.timeline),
      parameters_(parts.layout,
                  {stage_policy(options.stage), options.overlap},
                  communication_,
                  {parts.memory.parameters, parts.memory.buffers},
                  streams.compute),
      gradients_(make_reducer(parts, options, communication_, streams.compute)) {
  DSTRAIN_CHECK(options.overlap.enabled || !streams.overlap(), "two streams without overlap");
}

void ShardedStore::expect(std::span<const int> units, std::int64_t rounds) {
  parameters_.expect(units, rounds);
}

std::span<const TensorView> ShardedStore::acquire(int unit, StreamView stream) {
  DSTRAIN_CHECK(leased_ == -1, "unit {} is still in use", leased_);
  leased_ = unit;
  return parameters_.acquire(unit, stream);
}

void ShardedStore::release(int unit, StreamView /*stream*/) {
  DSTRAIN_CHECK(leased_ == unit, "unit {} is in use, not {}", leased_, unit);
  parameters_.release(unit);
  leased_ = -1;
}

void ShardedStore::begin(engine::MicroStep micro_step) {
  gradients_->begin(micro_step);
}

std::span<const model::GradientTarget> ShardedStore::gradients(int unit, StreamView stream) {
  return gradients_->targets(unit, stream);
}

void ShardedStore::reduce(int unit, StreamView stream) {
  gradients_->reduce(unit, stream);
}

double ShardedStore::gradient_norm(StreamView stream) {
  communication_.synchronize();
  stream.synchronize();
  optim::ExactSum own;
  for (int index = 0; index < static_cast<int>(parts_.layout.segments().size()); ++index) {
    const Recording recording(parts_.timeline, Lane::compute, Activity::norm, index);
    optim::add_squares(gradients_->own(index), own);
  }
  optim::ExactSum total;
  for (const optim::ExactSum& part :
       comm::gather_values(own, parts_.communicator, communication_.stream())) {
    total.add(part);
  }
  return std::sqrt(total.value());
}

void ShardedStore::step(const optim::StepScalars& scalars, StreamView stream) {
  for (int index = 0; index < static_cast<int>(parts_.layout.segments().size()); ++index) {
    {
      const Recording recording(parts_.timeline, Lane::compute, Activity::update, index);
      const auto states = parts_.states->acquire(index, stream);
      parts_.optimizer->step(optimizer_shard(index, states), scalars, stream);
      parts_.states->release(index, stream);
    }
    parameters_.publish(index, stream);
  }
  communication_.synchronize();
}

optim::OptimizerShard ShardedStore::optimizer_shard(
    int segment, std::span<const std::span<float>> states) const {
  const TensorView updated = parameters_.updated(segment);
  const std::span<const float> gradients = gradients_->updated(segment);
  if (!has_masters(updated.dtype())) return {updated.as<float>(), gradients, states};
  return {states.back(), gradients, states.first(states.size() - 1), updated.as<BFloat16>()};
}

}  // namespace dstrain::zero
