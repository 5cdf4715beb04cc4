#include "zero/not_finite.h"

#include <cmath>

#include "runtime/ops/convert.h"
#include "runtime/ops/fill_zero.h"
#include "runtime/ops/square_sum.h"
#include "zero/shard_slices.h"

namespace dstrain::zero {
namespace {

bool is_finite(const TensorView& values, const TensorView& sum, StreamView stream) {
  ExactSum squares;
  ops::fill_zero(sum, stream);
  ops::add_squares(values, sum, stream);
  ops::convert(sum, ops::view_of(squares), stream);
  stream.synchronize();
  return std::isfinite(squares.value());
}

/// Of the parameters in a sub-group that lies on a disk.
std::optional<int> first_on_disk(RankShards& shards, int group) {
  const SubGroup& place = shards.plan().group(group);
  RankShards::ParameterLease parameters = shards.lend(place.segment, LeaseUse::measure);
  RankShards::GroupLease lease = shards.lend(group, parameters);
  std::optional<int> first;
  ExactSum squares;
  for (const auto& [slice, before] : group_slices(shards.layout(), place, shards.rank())) {
    const TensorView values = lease.gradients.part(slice.offset, {slice.elements.count()});
    if (is_finite(values, ops::view_of(squares), lease.stream)) continue;
    first = slice.parameter;
    break;
  }
  lease.give_back();
  parameters.give_back();
  return first;
}

}  // namespace

std::optional<std::string> first_not_finite(RankShards& shards,
                                            const GradientReducer& gradients,
                                            const TensorView& sum,
                                            StreamView stream) {
  const FlatLayout& layout = shards.layout();
  std::optional<int> first;
  const auto note = [&first](std::optional<int> parameter) {
    if (parameter && (!first || *parameter < *first)) first = parameter;
  };
  ExactSum host_squares;
  for (int segment = 0; segment < static_cast<int>(layout.segments().size()); ++segment) {
    const SegmentShare& share = shards.plan().segment(segment);
    const TensorView own = gradients.own(segment);
    if (!own.empty()) {
      const bool here = own.device() == stream.device();
      for (const ShardSlice& slice : shard_slices(layout, segment, shards.rank())) {
        const TensorView values = own.part(slice.offset, {slice.elements.count()});
        if (is_finite(values, here ? sum : ops::view_of(host_squares),
                      shards.stream_of(own.device())))
          continue;
        note(slice.parameter);
        break;
      }
    }
    const bool on_disk = layout.segment(segment).trainable && share.optimizer == MemoryTier::nvme;
    if (!on_disk || updates_early(shards.offload())) continue;
    for (int group = share.first_group; group < share.end_group; ++group) {
      note(first_on_disk(shards, group));
    }
  }
  if (!first) return std::nullopt;
  return layout.parameter(*first).spec.name;
}

}  // namespace dstrain::zero
