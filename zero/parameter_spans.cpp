#include "zero/parameter_spans.h"

#include <algorithm>

namespace dstrain::zero {

std::vector<std::string> parameter_names(const FlatLayout& layout) {
  std::vector<std::string> names;
  for (const Placement& place : layout.parameters()) names.push_back(place.spec.name);
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<optim::ParameterSpan> parameter_spans(const RankShards& shards,
                                                  const SubGroup& group,
                                                  const std::vector<std::string>& names) {
  const FlatLayout& layout = shards.layout();
  const Segment& segment = layout.segment(group.segment);
  const std::int64_t shard = shards.shards_updates() ? shards.rank() * segment.shard_numel : 0;
  const std::int64_t begin = shard + group.offset;
  std::vector<optim::ParameterSpan> spans;
  for (const int index : segment.parameters) {
    const Placement& place = layout.parameter(index);
    const std::int64_t first = std::max(begin, place.offset);
    const std::int64_t last = std::min(begin + group.numel, place.offset + place.shape.numel());
    if (first >= last) continue;
    const auto number = std::ranges::lower_bound(names, place.spec.name) - names.begin();
    spans.push_back({.offset = first - begin,
                     .numel = last - first,
                     .parameter = static_cast<int>(number),
                     .begin = place.begin + first - place.offset});
  }
  return spans;
}

}  // namespace dstrain::zero
