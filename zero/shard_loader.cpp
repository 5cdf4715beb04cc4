#include "zero/shard_loader.h"

#include <algorithm>
#include <vector>

#include "runtime/ops/convert.h"
#include "runtime/ops/fill_zero.h"
#include "zero/shard_slices.h"

namespace dstrain::zero {
namespace {

/// Reads elements of a parameter, from `begin` on, into `values` in any memory, through host
/// buffers. Waits for `stream`.
void read_values(const model::ParameterSource& source,
                 const model::ParameterSpec& spec,
                 std::int64_t begin,
                 TensorView values,
                 StreamView stream) {
  constexpr std::int64_t piece = 1 << 18;
  std::vector<float> exact(static_cast<std::size_t>(std::min(piece, values.numel())));
  for (std::int64_t done = 0; done < values.numel(); done += piece) {
    const Shape count{std::min(piece, values.numel() - done)};
    const HostView read(exact, count);
    source.read(spec, begin + done, read.as<float>());
    ops::convert(read, values.part(done, count), stream);
    stream.synchronize();
  }
}

}  // namespace

void ShardLoader::load(SegmentId segment) {
  const SegmentShare& share = shards_.plan().segments[segment];
  RankShards::ParameterLease parameters = shards_.lend(segment, LeaseUse::replace);
  if (share.sub_groups.empty()) {
    const StreamView stream = shards_.stream_of(parameters.values().device());
    const SubGroup all{.segment = segment, .numel = parameters.values().numel()};
    load_values(all, sources_.parameters, parameters.values(), stream);
    stream.synchronize();
  }
  for (const SubGroupId sub_group : share.sub_groups) {
    load_sub_group(sub_group, parameters);
  }
  parameters.give_back();
}

void ShardLoader::load_sub_group(SubGroupId id, const RankShards::ParameterLease& parameters) {
  const SubGroup& sub_group = shards_.plan().sub_groups[id];
  RankShards::SubGroupLease lease = shards_.lend(id, parameters);
  load_values(sub_group, sources_.parameters, lease.exact, lease.stream);
  if (sub_group.master) ops::convert(lease.exact, lease.parameters, lease.stream);
  for (std::size_t state = 0; state < lease.states.size(); ++state) {
    if (sources_.optimizer.empty()) {
      ops::fill_zero(lease.states[state], lease.stream);
    } else {
      load_values(sub_group, *sources_.optimizer[state], lease.states[state], lease.stream);
    }
  }
  lease.stream.synchronize();
  lease.give_back();
}

/// Reads this rank's part of a group's values, and gets the other parts if all are kept here.
void ShardLoader::load_values(const SubGroup& sub_group,
                              const model::ParameterSource& source,
                              TensorView values,
                              StreamView stream) {
  const FlatLayout& layout = shards_.layout();
  const TensorView own = own_shard(layout.segment(sub_group.segment), shards_.rank(), values);
  ops::fill_zero(own, stream);  // the padding
  for (const auto& [slice, before] : sub_group_slices(layout, sub_group, shards_.rank())) {
    read_values(source, layout.parameter(slice.parameter).spec, slice.elements.begin,
                own.part(slice.offset, {slice.elements.count()}), stream);
  }
  if (values.numel() == own.numel()) return;
  communication_.follow(stream);
  communication_.communicator().all_gather(own, values, communication_.stream());
  communication_.synchronize();
}

}  // namespace dstrain::zero
