#include "zero/parameter_spans.h"

#include <algorithm>

#include "zero/shard_slices.h"

namespace dstrain::zero {

std::vector<std::string> parameter_names(const FlatLayout& layout) {
  std::vector<std::string> names;
  for (const Placement& placement : layout.parameters()) names.push_back(placement.spec.name);
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<optim::ParameterSpan> parameter_spans(const RankShards& shards,
                                                  const SubGroup& sub_group,
                                                  const std::vector<std::string>& names) {
  const FlatLayout& layout = shards.layout();
  const std::int64_t shard_numel = layout.segment(sub_group.segment).shard_numel;
  const std::int64_t begin =
      (shards.shards_updates() ? shards.rank() * shard_numel : 0) + sub_group.offset;
  std::vector<optim::ParameterSpan> spans;
  for (const ShardSlice& slice :
       range_slices(layout, sub_group.segment, {begin, begin + sub_group.numel})) {
    const std::string& name = layout.parameter(slice.parameter).spec.name;
    const auto number = std::ranges::lower_bound(names, name) - names.begin();
    spans.push_back({.offset = slice.offset,
                     .numel = slice.elements.count(),
                     .parameter_number = static_cast<int>(number),
                     .begin = slice.elements.begin});
  }
  return spans;
}

}  // namespace dstrain::zero
