#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "runtime/engine/parameter_store.h"
#include "zero/rank_shards.h"

namespace dstrain::zero {

/// The states and slices that a checkpoint of a run holds, at every stage; see
/// engine::ParameterStore. Rank 0 has the largest share.
std::vector<engine::SavedState> saved_states(std::span<const std::string_view> optimizer_states,
                                             DType dtype,
                                             const config::StatePrecision& precision);
std::vector<engine::ParameterSlice> saved_slices(const FlatLayout& layout, int rank);

/// Copies the values of this rank's slices to host memory and waits for the copies. All
/// `optimizer_states` of frozen parameters are zero, as at the start of training.
void copy_saved(RankShards& shards, std::size_t optimizer_states, engine::SaveTargetOf target_of);

}  // namespace dstrain::zero
