#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/base/typed_index.h"
#include "runtime/model/model.h"
#include "runtime/optim/parameter_groups.h"
#include "zero/partition.h"

namespace dstrain::zero {

/// Parameters start, and shards end, on multiples of this many elements within a segment. The
/// blocks of the gradient norm are therefore never cut, and rows are aligned to cache lines.
inline constexpr std::int64_t layout_alignment = 64;

/// Index into FlatLayout::segments().
enum class SegmentId : int {};
/// Index into FlatLayout::parameters().
enum class ParameterId : int {};

/// The position of a parameter, or of a tile of one, in its segment.
struct Placement {
  model::ParameterSpec spec;  ///< of the whole parameter
  std::int64_t begin = 0;     ///< index of its first element that is here
  Shape shape;                ///< of the elements that are here
  SegmentId segment{};
  std::int64_t offset = 0;  ///< first element within the segment
};

/// A flat run of parameters that is padded, gathered, reduced, updated and saved as one.
struct Segment {
  DType dtype = DType::f32;  ///< as units see it
  optim::ParameterGroupId parameter_group{};
  bool trainable = true;    ///< false: it has neither gradients nor states, and is not updated
  bool shared = false;      ///< other units borrow its parameters
  bool persistent = false;  ///< stays whole on every rank in stage 3
  bool tile = false;        ///< a tile: used together with its unit's other segments
  std::vector<ParameterId> parameters{};  ///< in order of offset
  std::int64_t numel = 0;                 ///< padded: world times shard_numel
  std::int64_t shard_numel = 0;
};

/// The layout of all parameters in flat segments. It is the same for all stages, so that sums run
/// in the same order.
///
/// A unit's parameters are split into segments by parameter group and class: sharded (large, used
/// by this unit only), persistent (small), and shared with other units. Each tile is a segment.
class FlatLayout {
 public:
  struct Options {
    int world = 1;
    std::int64_t persistence_threshold_numel = 0;  ///< fewer elements than this: persistent
    std::int64_t persistence_total_numel = std::numeric_limits<std::int64_t>::max();
    const optim::ParameterGroups* groups = nullptr;  ///< null: one group, which trains
  };
  FlatLayout(const model::Model& model, Options options);

  [[nodiscard]] const TypedVector<ParameterId, Placement>& parameters() const {
    return parameters_;
  }
  [[nodiscard]] const TypedVector<SegmentId, Segment>& segments() const { return segments_; }
  [[nodiscard]] const Placement& parameter(ParameterId id) const { return parameters_[id]; }
  [[nodiscard]] const Segment& segment(SegmentId id) const { return segments_[id]; }
  static constexpr ParameterId in_tiles{-1};  ///< in place of a parameter that is cut into tiles
  /// Returns the parts of the model, Model::parts().
  [[nodiscard]] IdRange<model::PartId> parts() const { return part_parameters_.ids(); }
  /// The parameters of a part: those that it owns (or in_tiles), then those that it borrows, which
  /// is UnitCall's order.
  [[nodiscard]] const std::vector<ParameterId>& part_parameters(model::PartId part) const {
    return part_parameters_[part];
  }
  /// Whether the part is a tile.
  [[nodiscard]] bool is_tile(model::PartId part) const {
    const std::vector<SegmentId>& segments = part_segments(part);
    return !segments.empty() && segment(segments.front()).tile;
  }
  /// Whether a parameter has gradients.
  [[nodiscard]] bool trains(ParameterId parameter) const {
    return segment(this->parameter(parameter).segment).trainable;
  }
  /// The segments that hold a part's parameters, each once.
  [[nodiscard]] const std::vector<SegmentId>& part_segments(model::PartId part) const {
    return part_segments_[part];
  }
  /// The type of the model's parameters.
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] int world() const { return options_.world; }
  /// Elements of all parameters, without padding.
  [[nodiscard]] std::int64_t numel() const { return numel_; }

 private:
  class Builder;

  Options options_;
  DType dtype_;
  TypedVector<ParameterId, Placement> parameters_;
  TypedVector<SegmentId, Segment> segments_;
  TypedVector<model::PartId, std::vector<ParameterId>> part_parameters_;
  TypedVector<model::PartId, std::vector<SegmentId>> part_segments_;
  std::int64_t numel_ = 0;
};

}  // namespace dstrain::zero
