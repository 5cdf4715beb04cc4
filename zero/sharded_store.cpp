#include "zero/sharded_store.h"

#include <cmath>

#include "runtime/comm/gather_values.h"
#include "runtime/optim/gradient_norm.h"
#include "zero/sharded_gradients.h"
#include "zero/whole_gradients.h"

namespace dstrain::zero {
namespace {

std::unique_ptr<GradientReducer> make_reducer(const ShardedStore::Parts& parts,
                                              const ShardedStore::Options& options,
                                              StreamView stream) {
  if (parts.optimizer == nullptr) return nullptr;
  const StagePolicy policy = stage_policy(options.stage);
  if (policy.shard_gradients) {
    return std::make_unique<ShardedGradients>(
        parts.layout, ShardedGradients::Options{options.reduce_bucket_numel}, parts.communicator,
        ShardedGradients::Memory{parts.memory.gradients, parts.memory.buffers}, stream);
  }
  const auto result =
      policy.shard_optimizer ? WholeGradients::Result::own_shard : WholeGradients::Result::whole;
  return std::make_unique<WholeGradients>(parts.layout, result, parts.communicator,
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

ShardedStore::ShardedStore(Parts parts, Options options, StreamView stream)
    : parts_(parts),
      parameters_(parts.layout,
                  stage_policy(options.stage),
                  parts.communicator,
                  {parts.memory.parameters, parts.memory.buffers},
                  stream),
      gradients_(make_reducer(parts, options, stream)) {}

void ShardedStore::load(const model::ParameterSource& source, StreamView stream) {
  const bool masters = has_masters(parts_.layout.dtype());
  parameters_.load(source, masters ? parts_.states : nullptr, stream);
}

void ShardedStore::expect(std::span<const int> /*units*/, std::int64_t /*rounds*/) {}

std::span<const TensorView> ShardedStore::acquire(int unit, StreamView stream) {
  DSTRAIN_CHECK(leased_ == -1, "unit {} is still in use", leased_);
  leased_ = unit;
  return parameters_.acquire(unit, stream);
}

void ShardedStore::release(int unit, StreamView /*stream*/) {
  DSTRAIN_CHECK(leased_ == unit, "unit {} is in use, not {}", leased_, unit);
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
  stream.synchronize();
  optim::ExactSum own;
  for (int index = 0; index < static_cast<int>(parts_.layout.segments().size()); ++index) {
    optim::add_squares(gradients_->own(index), own);
  }
  optim::ExactSum total;
  for (const optim::ExactSum& part : comm::gather_values(own, parts_.communicator, stream)) {
    total.add(part);
  }
  return std::sqrt(total.value());
}

void ShardedStore::step(const optim::StepScalars& scalars, StreamView stream) {
  for (int index = 0; index < static_cast<int>(parts_.layout.segments().size()); ++index) {
    const auto states = parts_.states->acquire(index, stream);
    parts_.optimizer->step(optimizer_shard(index, states), scalars, stream);
    parts_.states->release(index, stream);
  }
  parameters_.publish(stream);
}

optim::OptimizerShard ShardedStore::optimizer_shard(
    int segment, std::span<const std::span<float>> states) const {
  const TensorView updated = parameters_.updated(segment);
  const std::span<const float> gradients = gradients_->updated(segment);
  if (!has_masters(updated.dtype())) return {updated.as<float>(), gradients, states};
  return {states.back(), gradients, states.first(states.size() - 1), updated.as<BFloat16>()};
}

}  // namespace dstrain::zero
