// What of a ShardedStore goes into a checkpoint and comes from one.
#include "zero/saved_states.h"

#include "runtime/ops/convert.h"
#include "runtime/ops/fill_zero.h"
#include "zero/load_values.h"
#include "zero/shard_slices.h"
#include "zero/sharded_store.h"

namespace dstrain::zero {

using engine::StateUse;

std::vector<engine::SavedState> saved_states(std::span<const std::string_view> optimizer_states,
                                             DType dtype) {
  std::vector<engine::SavedState> saved{{"fp32", DType::f32}};
  for (const std::string_view name : optimizer_states) {
    saved.push_back({std::string(name), DType::f32});
  }
  if (dtype != DType::f32) saved.push_back({"weights", dtype});
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
  stream.synchronize();
  communication_.synchronize();
  if (runs_.empty()) {
    for (int index = 0; index < static_cast<int>(parts_.layout.segments().size()); ++index) {
      parameters_.load_shard(index, sources.parameters, stream);
      parameters_.loaded(index, stream);
    }
  }
  for (std::size_t run = 0; run < runs_.size(); ++run) {
    load_run(static_cast<int>(run), sources, stream);
    if (completes_segment(run)) parameters_.loaded(runs_[run].segment, stream);
  }
  communication_.synchronize();
}

void ShardedStore::load_run(int index, const engine::StateSources& sources, StreamView stream) {
  const StateRun& run = runs_[static_cast<std::size_t>(index)];
  const auto states = parts_.states->acquire(index, StateUse::replace, stream).states;
  if (run.master) {
    load_state(run, sources.parameters, states.back(), stream);
    ops::convert(states.back(), parameters_.hold(run, true), stream);
  } else {
    parameters_.load_shard(run.segment, sources.parameters, stream);
  }
  for (std::size_t state = 0; state < parts_.optimizer->state_names().size(); ++state) {
    if (sources.optimizer.empty()) {
      ops::fill_zero(states[state], stream);
    } else {
      load_state(run, *sources.optimizer[state], states[state], stream);
    }
  }
  stream.synchronize();
  parts_.states->release(index, StateUse::replace, stream);
}

/// Reads this rank's part of a run's values, and gets the others' parts where all are here.
void ShardedStore::load_state(const StateRun& run,
                              const model::ParameterSource& source,
                              TensorView values,
                              StreamView stream) {
  const TensorView own =
      own_part(parts_.layout.segment(run.segment), communication_.rank(), values);
  ops::fill_zero(own, stream);  // the padding
  for (const auto& [slice, before] : run_slices(parts_.layout, run, communication_.rank())) {
    load_values(source, parts_.layout.parameter(slice.parameter).spec, slice.elements.begin,
                own.part(slice.offset, {slice.elements.count()}), stream);
  }
  if (values.numel() == own.numel()) return;
  communication_.follow(stream);
  communication_.communicator().all_gather(own, values, communication_.stream());
  communication_.synchronize();
}

std::vector<engine::SavedState> ShardedStore::saved_states() const {
  return zero::saved_states(parts_.optimizer->state_names(), parts_.layout.dtype());
}

std::vector<engine::ParameterSlice> ShardedStore::saved_slices(int rank) const {
  return zero::saved_slices(parts_.layout, rank);
}

void ShardedStore::visit_saved(engine::SavedVisitor visit, StreamView stream) {
  std::size_t visited = 0;  // slices that were begun
  for (std::size_t index = 0; index < runs_.size(); ++index) {
    const StateRun& run = runs_[index];
    const int at = static_cast<int>(index);
    const auto states = parts_.states->acquire(at, StateUse::inspect, stream).states;
    const std::vector<TensorView> saved = saved_values(run, states);
    for (const auto& [slice, before] : run_slices(parts_.layout, run, communication_.rank())) {
      if (before == 0) ++visited;
      for (std::size_t state = 0; state < saved.size(); ++state) {
        visit({visited - 1, state, before},
              saved[state].part(slice.offset, {slice.elements.count()}));
      }
    }
    stream.synchronize();
    parts_.states->release(at, StateUse::inspect, stream);
    if (completes_segment(index)) parameters_.let_go(run.segment);
  }
}

/// This rank's part of a run, in the order of saved_states().
std::vector<TensorView> ShardedStore::saved_values(const StateRun& run,
                                                   std::span<const TensorView> states) {
  const TensorView parameters = parameters_.hold(run, false);
  std::vector<TensorView> values{run.master ? states.back() : parameters};
  for (std::size_t i = 0; i < parts_.optimizer->state_names().size(); ++i) {
    values.push_back(states[i]);
  }
  if (parameters.dtype() != DType::f32) values.push_back(parameters);
  for (TensorView& each : values) {
    each = own_part(parts_.layout.segment(run.segment), communication_.rank(), each);
  }
  return values;
}

}  // namespace dstrain::zero
