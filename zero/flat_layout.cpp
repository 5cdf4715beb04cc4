#include "zero/flat_layout.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "runtime/base/check.h"

namespace dstrain::zero {
namespace {

enum class SegmentClass { sharded, persistent, shared };
constexpr std::size_t segment_class_count = 3;

}  // namespace

FlatLayout::FlatLayout(const model::Model& model, Options options)
    : options_(options), dtype_(model.dtype) {
  place_parameters(model);
  resolve_uses(model);
}

void FlatLayout::place_parameters(const model::Model& model) {
  std::set<std::string> borrowed;
  for (const auto& unit : model.units) {
    borrowed.insert(unit->spec().borrowed.begin(), unit->spec().borrowed.end());
  }
  std::int64_t persistent_numel = 0;
  const auto class_of = [&](const model::ParameterSpec& spec) {
    if (borrowed.contains(spec.name)) return SegmentClass::shared;
    const std::int64_t numel = spec.shape.numel();
    if (numel >= options_.persistence_threshold_numel ||
        persistent_numel + numel > options_.persistence_total_numel) {
      return SegmentClass::sharded;
    }
    persistent_numel += numel;
    return SegmentClass::persistent;
  };
  for (int unit = 0; unit < static_cast<int>(model.units.size()); ++unit) {
    std::array<Segment, segment_class_count> by_class;
    for (const auto& spec : model.units[static_cast<std::size_t>(unit)]->spec().parameters) {
      const SegmentClass kind = class_of(spec);
      Segment& segment = by_class.at(static_cast<std::size_t>(kind));
      segment.unit = unit;
      segment.shared = kind == SegmentClass::shared;
      segment.persistent = kind == SegmentClass::persistent;
      segment.parameters.push_back(static_cast<int>(parameters_.size()));
      parameters_.push_back({spec, unit, static_cast<int>(kind), segment.numel});
      segment.numel += round_up(spec.shape.numel(), layout_alignment);
      numel_ += spec.shape.numel();
    }
    for (Segment& segment : by_class) {
      if (segment.parameters.empty()) continue;
      const Partition partition(segment.numel, {options_.world, layout_alignment});
      segment.numel = partition.padded_numel();
      segment.shard_numel = partition.shard_numel();
      for (const int parameter : segment.parameters) {
        parameters_[static_cast<std::size_t>(parameter)].segment =
            static_cast<int>(segments_.size());
      }
      segments_.push_back(std::move(segment));
    }
  }
}

void FlatLayout::resolve_uses(const model::Model& model) {
  std::map<std::string, int> index_of;
  for (int i = 0; i < static_cast<int>(parameters_.size()); ++i) {
    const std::string& name = parameters_[static_cast<std::size_t>(i)].spec.name;
    DSTRAIN_CHECK(index_of.emplace(name, i).second, "two parameters are named {}", name);
  }
  for (const auto& unit : model.units) {
    std::vector<int> used;
    for (const auto& spec : unit->spec().parameters) used.push_back(index_of.at(spec.name));
    for (const std::string& name : unit->spec().borrowed) used.push_back(index_of.at(name));
    std::vector<int> segments;
    for (const int parameter : used) {
      const int segment = parameters_[static_cast<std::size_t>(parameter)].segment;
      if (std::find(segments.begin(), segments.end(), segment) == segments.end()) {
        segments.push_back(segment);
      }
    }
    unit_parameters_.push_back(std::move(used));
    unit_segments_.push_back(std::move(segments));
  }
}

}  // namespace dstrain::zero
