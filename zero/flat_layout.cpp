#include "zero/flat_layout.h"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/base/error.h"

namespace dstrain::zero {
namespace {

enum class SegmentClass { sharded, persistent, shared };
using GroupAndClass = std::pair<optim::ParameterGroupId, SegmentClass>;

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
    const auto parts = model_.parts();
    for (const model::Part& part : parts) {
      if (part.is_tile()) {
        add_tile(part);
      } else {
        add_unit(spec_of(part));
      }
    }
    for (const model::PartId id : parts.ids()) {
      if (!parts[id].is_tile()) add_borrowed(spec_of(parts[id]), id);
      resolve_segments(id);
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

  [[nodiscard]] optim::ParameterGroupId parameter_group_of(const model::ParameterSpec& spec) const {
    const optim::ParameterGroups* const groups = layout_.options_.groups;
    return groups == nullptr ? optim::ParameterGroupId{} : groups->group_of(spec.name);
  }

  [[nodiscard]] Segment segment_of(optim::ParameterGroupId parameter_group) const {
    const optim::ParameterGroups* const groups = layout_.options_.groups;
    return {.dtype = layout_.dtype_,
            .parameter_group = parameter_group,
            .trainable = groups == nullptr || groups->trains(parameter_group)};
  }

  void add_unit(const model::UnitSpec& spec) {
    std::map<GroupAndClass, Segment> segments;
    std::vector<ParameterId>& owned = layout_.part_parameters_.emplace_back();
    for (std::size_t i = 0; i < spec.parameters.size(); ++i) {
      const model::ParameterSpec& parameter = spec.parameters[i];
      const bool tiled = std::ranges::count(spec.tiles, i, &model::ParameterTile::parameter) > 0;
      const ParameterId id = tiled ? in_tiles : layout_.parameters_.end_id();
      DSTRAIN_CHECK(id_of_.emplace(parameter.name, id).second, "two parameters are named {}",
                    parameter.name);
      owned.push_back(id);
      layout_.numel_ += parameter.shape.numel();
      if (tiled) continue;
      const SegmentClass kind = class_of(parameter);
      const optim::ParameterGroupId group = parameter_group_of(parameter);
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
    layout_.part_parameters_.push_back({layout_.parameters_.end_id()});
    Segment segment = segment_of(parameter_group_of(parameter));
    segment.tile = true;
    place(parameter, {tile.first_row * columns, {tile.rows, columns}}, segment);
    finish(std::move(segment));
  }

  struct ParameterRange {
    std::int64_t begin = 0;
    Shape shape;
  };
  void place(const model::ParameterSpec& parameter, const ParameterRange& range, Segment& segment) {
    segment.parameters.push_back(
        layout_.parameters_.push_back({parameter, range.begin, range.shape, {}, segment.numel}));
    segment.numel += round_up(range.shape.numel(), layout_alignment);
  }

  void finish(Segment segment) {
    const Partition partition(segment.numel, {layout_.options_.world, layout_alignment});
    segment.numel = partition.padded_numel();
    segment.shard_numel = partition.shard_numel();
    const SegmentId id = layout_.segments_.push_back(std::move(segment));
    for (const ParameterId parameter : layout_.segments_[id].parameters) {
      layout_.parameters_[parameter].segment = id;
    }
  }

  void add_borrowed(const model::UnitSpec& spec, model::PartId part) {
    for (const std::string& name : spec.borrowed) {
      layout_.part_parameters_[part].push_back(id_of_.at(name));
    }
  }

  void resolve_segments(model::PartId part) {
    std::vector<SegmentId>& segments = layout_.part_segments_.emplace_back();
    for (const ParameterId parameter : layout_.part_parameters(part)) {
      if (parameter == in_tiles) continue;
      const SegmentId segment = layout_.parameter(parameter).segment;
      if (std::ranges::find(segments, segment) == segments.end()) segments.push_back(segment);
    }
  }

  const model::Model& model_;
  FlatLayout& layout_;
  std::set<std::string> borrowed_;
  std::map<std::string, ParameterId> id_of_;
  std::int64_t persistent_numel_ = 0;
};

FlatLayout::FlatLayout(const model::Model& model, Options options)
    : options_(options), dtype_(model.dtype) {
  Builder(model, *this).run();
}

}  // namespace dstrain::zero
