#include "zero/flat_layout.h"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/base/error.h"

namespace dstrain::zero {
namespace {

enum class SegmentClass { sharded, persistent, shared };
using GroupAndClass = std::pair<int, SegmentClass>;

}  // namespace

/// Lays a model out part by part.
class FlatLayout::Builder {
 public:
  Builder(const model::Model& model, FlatLayout& layout) : model_(model), layout_(layout) {
    for (const auto& unit : model.units) {
      borrowed_.insert(unit->spec().borrowed.begin(), unit->spec().borrowed.end());
    }
  }

  void run() {
    for (const model::Part& part : model_.parts()) {
      if (part.is_tile()) {
        add_tile(part);
      } else {
        add_unit(spec_of(part));
      }
    }
    int index = 0;
    for (const model::Part& part : model_.parts()) {
      if (!part.is_tile()) add_borrowed(spec_of(part), index);
      resolve_segments(index++);
    }
  }

 private:
  [[nodiscard]] const model::UnitSpec& spec_of(const model::Part& part) const {
    return model_.units[static_cast<std::size_t>(part.unit)]->spec();
  }

  SegmentClass class_of(const model::ParameterSpec& spec) {
    if (borrowed_.contains(spec.name)) return SegmentClass::shared;
    const std::int64_t numel = spec.shape.numel();
    const Options& options = layout_.options_;
    if (numel >= options.persistence_threshold_numel ||
        persistent_numel_ + numel > options.persistence_total_numel) {
      return SegmentClass::sharded;
    }
    persistent_numel_ += numel;
    return SegmentClass::persistent;
  }

  [[nodiscard]] int group_of(const model::ParameterSpec& spec) const {
    const optim::ParameterGroups* const groups = layout_.options_.groups;
    return groups == nullptr ? 0 : groups->group_of(spec.name);
  }

  [[nodiscard]] Segment segment_of(int group) const {
    const optim::ParameterGroups* const groups = layout_.options_.groups;
    return {.dtype = layout_.dtype_,
            .group = group,
            .trainable = groups == nullptr || groups->trains(group)};
  }

  void add_unit(const model::UnitSpec& spec) {
    std::map<GroupAndClass, Segment> segments;
    std::vector<int>& owned = layout_.part_parameters_.emplace_back();
    for (std::size_t i = 0; i < spec.parameters.size(); ++i) {
      const model::ParameterSpec& parameter = spec.parameters[i];
      const int index = std::ranges::count(spec.tiles, i, &model::ParameterTile::parameter) > 0
                            ? in_tiles
                            : static_cast<int>(layout_.parameters_.size());
      DSTRAIN_CHECK(index_of_.emplace(parameter.name, index).second, "two parameters are named {}",
                    parameter.name);
      owned.push_back(index);
      layout_.numel_ += parameter.shape.numel();
      if (index == in_tiles) continue;
      const SegmentClass kind = class_of(parameter);
      const int group = group_of(parameter);
      const auto found = segments.try_emplace({group, kind}, segment_of(group)).first;
      found->second.shared = kind == SegmentClass::shared;
      found->second.persistent = kind == SegmentClass::persistent;
      place(parameter, {0, parameter.shape}, found->second);
    }
    for (auto& [key, segment] : segments) finish(std::move(segment));
  }

  void add_tile(const model::Part& part) {
    const model::UnitSpec& spec = spec_of(part);
    const model::ParameterTile& tile = spec.tiles[static_cast<std::size_t>(part.tile)];
    const model::ParameterSpec& parameter = spec.parameters[tile.parameter];
    DSTRAIN_CHECK(!borrowed_.contains(parameter.name), "{} is borrowed, but in tiles",
                  parameter.name);
    const std::int64_t columns = parameter.shape.numel() / parameter.shape[0];
    layout_.part_parameters_.push_back({static_cast<int>(layout_.parameters_.size())});
    Segment segment = segment_of(group_of(parameter));
    segment.tile = true;
    place(parameter, {tile.first_row * columns, {tile.rows, columns}}, segment);
    finish(std::move(segment));
  }

  struct ParameterRange {
    std::int64_t begin = 0;
    Shape shape;
  };
  void place(const model::ParameterSpec& parameter, const ParameterRange& range, Segment& segment) {
    segment.parameters.push_back(static_cast<int>(layout_.parameters_.size()));
    layout_.parameters_.push_back({parameter, range.begin, range.shape, 0, segment.numel});
    segment.numel += round_up(range.shape.numel(), layout_alignment);
  }

  void finish(Segment segment) {
    const Partition partition(segment.numel, {layout_.options_.world, layout_alignment});
    segment.numel = partition.padded_numel();
    segment.shard_numel = partition.shard_numel();
    for (const int parameter : segment.parameters) {
      layout_.parameters_[static_cast<std::size_t>(parameter)].segment =
          static_cast<int>(layout_.segments_.size());
    }
    layout_.segments_.push_back(std::move(segment));
  }

  void add_borrowed(const model::UnitSpec& spec, int part) {
    for (const std::string& name : spec.borrowed) {
      layout_.part_parameters_[static_cast<std::size_t>(part)].push_back(index_of_.at(name));
    }
  }

  void resolve_segments(int part) {
    std::vector<int>& segments = layout_.part_segments_.emplace_back();
    for (const int parameter : layout_.part_parameters(part)) {
      if (parameter == in_tiles) continue;
      const int segment = layout_.parameter(parameter).segment;
      if (std::ranges::find(segments, segment) == segments.end()) segments.push_back(segment);
    }
  }

  const model::Model& model_;
  FlatLayout& layout_;
  std::set<std::string> borrowed_;
  std::map<std::string, int> index_of_;  ///< of parameters
  std::int64_t persistent_numel_ = 0;
};

FlatLayout::FlatLayout(const model::Model& model, Options options)
    : options_(options), dtype_(model.dtype) {
  Builder(model, *this).run();
}

}  // namespace dstrain::zero
