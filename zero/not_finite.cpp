#include "zero/not_finite.h"

#include <algorithm>
#include <cmath>

#include "runtime/ops/convert.h"
#include "runtime/ops/fill_zero.h"
#include "runtime/ops/square_sum.h"
#include "zero/shard_slices.h"

namespace dstrain::zero {
namespace {

using Last = std::optional<ParameterId>;  // none is less than any

bool is_finite(const TensorView& values, const TensorView& sum, StreamView stream) {
  ExactSum squares;
  ops::fill_zero(sum, stream);
  ops::add_squares({{values}, sum}, stream);
  ops::convert(sum, ops::view_of(squares), stream);
  stream.synchronize();
  return std::isfinite(squares.value());
}

/// The last one in a segment whose gradients are in memory.
Last last_in_memory(RankShards& shards, SegmentId segment, TensorView own, TensorView sum) {
  ExactSum host_squares;
  if (own.device() != sum.device()) sum = ops::view_of(host_squares);
  Last last;
  for (const ShardSlice& slice : shard_slices(shards.layout(), segment, shards.rank())) {
    const TensorView values = own.part(slice.offset, {slice.elements.count()});
    if (is_finite(values, sum, shards.stream_of(own.device()))) continue;
    last = std::max(last, Last(slice.parameter));
  }
  return last;
}

/// The last one in a sub-group on a disk.
Last last_on_disk(RankShards& shards, SubGroupId id) {
  const SubGroup& sub_group = shards.plan().sub_groups[id];
  RankShards::ParameterLease parameters = shards.lend(sub_group.segment, LeaseUse::measure);
  RankShards::SubGroupLease lease = shards.lend(id, parameters);
  Last last;
  ExactSum squares;
  for (const auto& [slice, before] : sub_group_slices(shards.layout(), sub_group, shards.rank())) {
    const TensorView values = lease.gradients.part(slice.offset, {slice.elements.count()});
    if (is_finite(values, ops::view_of(squares), lease.stream)) continue;
    last = std::max(last, Last(slice.parameter));
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
  Last last;
  for (const SegmentId segment : layout.segments().ids()) {
    const TensorView own = gradients.own(segment);
    if (!own.empty()) last = std::max(last, last_in_memory(shards, segment, own, sum));
  }
  for (const SubGroupId id : shards.plan().sub_groups.ids()) {
    const SubGroup& sub_group = shards.plan().sub_groups[id];
    const bool kept = sub_group.gradients && !updates_early(shards.offload());
    if (kept) last = std::max(last, last_on_disk(shards, id));
  }
  if (!last) return std::nullopt;
  return layout.parameter(*last).spec.name;
}

}  // namespace dstrain::zero
