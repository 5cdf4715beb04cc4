#include "zero/not_finite.h"

#include <algorithm>
#include <cmath>

#include "runtime/ops/convert.h"
#include "runtime/ops/fill_zero.h"
#include "runtime/ops/square_sum.h"
#include "zero/shard_slices.h"

namespace dstrain::zero {
namespace {

constexpr int none = -1;  ///< before all parameters

bool is_finite(const TensorView& values, const TensorView& sum, StreamView stream) {
  ExactSum squares;
  ops::fill_zero(sum, stream);
  ops::add_squares({{values}, sum}, stream);
  ops::convert(sum, ops::view_of(squares), stream);
  stream.synchronize();
  return std::isfinite(squares.value());
}

/// Of a segment whose gradients lie in memory.
int last_in_memory(RankShards& shards, int segment, TensorView own, TensorView sum) {
  ExactSum host_squares;
  if (own.device() != sum.device()) sum = ops::view_of(host_squares);
  int last = none;
  for (const ShardSlice& slice : shard_slices(shards.layout(), segment, shards.rank())) {
    const TensorView values = own.part(slice.offset, {slice.elements.count()});
    if (is_finite(values, sum, shards.stream_of(own.device()))) continue;
    last = std::max(last, slice.parameter);
  }
  return last;
}

/// Of a sub-group that lies on a disk.
int last_on_disk(RankShards& shards, int group) {
  const SubGroup& place = shards.plan().group(group);
  RankShards::ParameterLease parameters = shards.lend(place.segment, LeaseUse::measure);
  RankShards::SubGroupLease lease = shards.lend(group, parameters);
  int last = none;
  ExactSum squares;
  for (const auto& [slice, before] : sub_group_slices(shards.layout(), place, shards.rank())) {
    const TensorView values = lease.gradients.part(slice.offset, {slice.elements.count()});
    if (is_finite(values, ops::view_of(squares), lease.stream)) continue;
    last = std::max(last, slice.parameter);
  }
  lease.give_back();
  parameters.give_back();
  return last;
}

}  // namespace

std::optional<std::string> last_not_finite(RankShards& shards,
                                           const GradientReducer& gradients,
                                           const TensorView& sum) {
  const FlatLayout& layout = shards.layout();
  int last = none;
  for (int segment = 0; segment < static_cast<int>(layout.segments().size()); ++segment) {
    const TensorView own = gradients.own(segment);
    if (!own.empty()) last = std::max(last, last_in_memory(shards, segment, own, sum));
  }
  for (int group = 0; group < static_cast<int>(shards.plan().groups.size()); ++group) {
    const SubGroup& place = shards.plan().group(group);
    const bool kept = place.gradients && !updates_early(shards.offload());
    if (kept) last = std::max(last, last_on_disk(shards, group));
  }
  if (last == none) return std::nullopt;
  return layout.parameter(last).spec.name;
}

}  // namespace dstrain::zero
