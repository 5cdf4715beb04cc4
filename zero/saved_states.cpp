// What of a ShardedStore goes into a checkpoint and comes from one.
#include "zero/saved_states.h"

#include <algorithm>

#include "zero/shard_slices.h"
#include "zero/sharded_store.h"

namespace dstrain::zero {
namespace {

TensorView view_of(std::span<float> values) {
  return {values, {static_cast<std::int64_t>(values.size())}};
}

}  // namespace

std::vector<engine::SavedState> saved_states(std::span<const std::string_view> optimizer_states,
                                             DType dtype) {
  std::vector<engine::SavedState> saved{{"fp32", DType::f32}};
  for (const std::string_view name : optimizer_states) {
    saved.push_back({std::string(name), DType::f32});
  }
  if (has_masters(dtype)) saved.push_back({"weights", dtype});
  return saved;
}

std::vector<engine::ParameterSlice> saved_slices(const FlatLayout& layout, int rank) {
  std::vector<engine::ParameterSlice> saved;
  for (int index = 0; index < static_cast<int>(layout.segments().size()); ++index) {
    for (const ShardSlice& slice : shard_slices(layout, index, rank)) {
      saved.push_back(
          {layout.parameter(slice.parameter).spec.name, slice.elements.begin, slice.elements.end});
    }
  }
  return saved;
}

void ShardedStore::load(const engine::StateSources& sources, StreamView stream) {
  const bool masters = has_masters(parts_.layout.dtype());
  parameters_.load(sources.parameters, masters ? parts_.states : nullptr, stream);
  if (sources.optimizer.empty()) return;
  for (int index = 0; index < static_cast<int>(parts_.layout.segments().size()); ++index) {
    load_states(index, sources.optimizer, stream);
  }
}

void ShardedStore::load_states(int index,
                               std::span<const model::ParameterSource* const> sources,
                               StreamView stream) {
  const Segment& segment = parts_.layout.segment(index);
  const auto states = parts_.states->acquire(index, stream);
  stream.synchronize();
  for (std::size_t state = 0; state < sources.size(); ++state) {
    const TensorView all = view_of(states[state]);
    const TensorView own = own_part(segment, communication_.rank(), all);
    std::ranges::fill(own.as<float>(), 0.0F);  // the padding
    for (const ShardSlice& slice : shard_slices(parts_.layout, index, communication_.rank())) {
      sources[state]->read(parts_.layout.parameter(slice.parameter).spec, slice.elements.begin,
                           own.part(slice.offset, {slice.elements.count()}).as<float>());
    }
    if (all.numel() == own.numel()) continue;
    communication_.communicator().all_gather(own, all, communication_.stream());
    communication_.synchronize();
  }
  parts_.states->release(index, stream);
}

std::vector<engine::SavedState> ShardedStore::saved_states() const {
  return zero::saved_states(parts_.optimizer->state_names(), parts_.layout.dtype());
}

std::vector<engine::ParameterSlice> ShardedStore::saved_slices(int rank) const {
  return zero::saved_slices(parts_.layout, rank);
}

void ShardedStore::visit_saved(engine::SavedVisitor visit, StreamView stream) {
  const std::size_t optimizer_states = parts_.optimizer->state_names().size();
  std::size_t visited = 0;
  for (int index = 0; index < static_cast<int>(parts_.layout.segments().size()); ++index) {
    const Segment& segment = parts_.layout.segment(index);
    const auto states = parts_.states->acquire(index, stream);
    stream.synchronize();
    // In the order of saved_states().
    std::vector<TensorView> own;
    const TensorView weights = parameters_.own_shard(index);
    const bool masters = has_masters(weights.dtype());
    own.push_back(masters ? own_part(segment, communication_.rank(), view_of(states.back()))
                          : weights);
    for (const std::span<float> state : states.first(optimizer_states)) {
      own.push_back(own_part(segment, communication_.rank(), view_of(state)));
    }
    if (masters) own.push_back(weights);
    for (const ShardSlice& slice : shard_slices(parts_.layout, index, communication_.rank())) {
      for (std::size_t state = 0; state < own.size(); ++state) {
        visit(visited, state, own[state].part(slice.offset, {slice.elements.count()}));
      }
      ++visited;
    }
    parts_.states->release(index, stream);
  }
}

}  // namespace dstrain::zero
