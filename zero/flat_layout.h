#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/model/model.h"
#include "runtime/optim/parameter_groups.h"
#include "zero/partition.h"

namespace dstrain::zero {

/// Parameters start on multiples of this many elements within a segment, and shards end on them:
/// the gradient norm's blocks are never cut, rows are aligned to cache lines.
inline constexpr std::int64_t layout_alignment = 64;

/// The place of a parameter, or of a tile of one.
struct Placement {
  model::ParameterSpec spec;  ///< of the whole parameter
  std::int64_t begin = 0;     ///< its first element that lies here
  Shape shape;                ///< of what lies here
  int segment = 0;            ///< index into FlatLayout::segments()
  std::int64_t offset = 0;    ///< first element within the segment
};

/// A flat run of parameters that is padded, gathered, reduced, updated and saved as one.
struct Segment {
  DType dtype = DType::f32;  ///< of what units see
  int group = 0;             ///< of optim::ParameterGroups
  bool trainable = true;     ///< false: it has neither gradients nor states, and is not updated
  bool shared = false;       ///< other units borrow its parameters
  bool persistent = false;   ///< stays whole on every rank in stage 3
  bool tile = false;         ///< of a tile: in use beside its unit's other segments
  std::vector<int> parameters{};  ///< in order of offset
  std::int64_t numel = 0;         ///< padded: world times shard_numel
  std::int64_t shard_numel = 0;
};

/// Where every parameter lies: the same for all stages, so that sums run in the same order.
///
/// A unit's parameters fall into segments by parameter group and class: sharded (large, used by
/// this unit alone), persistent (small), and shared with other units. Each tile is a segment.
class FlatLayout {
 public:
  struct Options {
    int world = 1;
    std::int64_t persistence_threshold_numel = 0;  ///< fewer elements than this: persistent
    std::int64_t persistence_total_numel = std::numeric_limits<std::int64_t>::max();
    const optim::ParameterGroups* groups = nullptr;  ///< null: one, which trains
  };
  FlatLayout(const model::Model& model, Options options);

  [[nodiscard]] const std::vector<Placement>& parameters() const { return parameters_; }
  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }
  [[nodiscard]] const Placement& parameter(int index) const {
    return parameters_.at(static_cast<std::size_t>(index));
  }
  [[nodiscard]] const Segment& segment(int index) const {
    return segments_.at(static_cast<std::size_t>(index));
  }
  static constexpr int in_tiles = -1;  ///< instead of the index of a parameter
  /// How many Model::parts() there are.
  [[nodiscard]] int parts() const { return static_cast<int>(part_parameters_.size()); }
  /// Indices of what a part has: of a unit's own, the parameters that it owns (or in_tiles), then
  /// those it borrows, which is UnitCall's order.
  [[nodiscard]] const std::vector<int>& part_parameters(int part) const {
    return part_parameters_.at(static_cast<std::size_t>(part));
  }
  /// Whether the part is a tile.
  [[nodiscard]] bool is_tile(int part) const {
    const std::vector<int>& segments = part_segments(part);
    return !segments.empty() && segment(segments.front()).tile;
  }
  /// Whether a parameter has gradients.
  [[nodiscard]] bool trains(int parameter) const {
    return segment(this->parameter(parameter).segment).trainable;
  }
  /// Indices of the segments those lie in, each once.
  [[nodiscard]] const std::vector<int>& part_segments(int part) const {
    return part_segments_.at(static_cast<std::size_t>(part));
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
  std::vector<Placement> parameters_;
  std::vector<Segment> segments_;
  std::vector<std::vector<int>> part_parameters_;
  std::vector<std::vector<int>> part_segments_;
  std::int64_t numel_ = 0;
};

}  // namespace dstrain::zero
