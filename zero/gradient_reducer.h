#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "runtime/engine/parameter_store.h"
#include "zero/flat_layout.h"

namespace dstrain::zero {

/// Accumulates the gradients of the micro steps and sums them over the ranks. After the last micro
/// step, own(segment) is this rank's shard of the sum.
class GradientReducer {
 public:
  virtual ~GradientReducer() = default;
  virtual void begin(engine::MicroStep micro_step) = 0;
  /// Returns the memory for the gradients of the parameters that the backward of `part` uses.
  virtual std::span<const model::GradientTarget> targets(model::PartId part, StreamView stream) = 0;
  /// Call when the backward of `part` is done.
  virtual void reduce(model::PartId part, StreamView stream) = 0;
  /// This rank's shard of the summed gradients of a segment; empty if it is on a disk, or if the
  /// segment has none.
  [[nodiscard]] virtual TensorView own(SegmentId segment) const = 0;
  /// The summed gradients of the elements that this rank updates of a segment.
  [[nodiscard]] virtual TensorView updated(SegmentId segment) const = 0;
};

/// Counts, for each segment that has gradients, the parts whose backward has not run yet.
class PendingUses {
 public:
  explicit PendingUses(const FlatLayout& layout);
  void reset() { pending_ = users_; }
  /// Notes that the backward of `part` is done. Returns the segments that are complete now.
  std::span<const SegmentId> complete(model::PartId part);

 private:
  const FlatLayout& layout_;
  TypedVector<SegmentId, int> users_;
  TypedVector<SegmentId, int> pending_;
  std::vector<SegmentId> completed_;
};

/// The gradient targets of a unit, and of one of its tiles at a time.
class GradientTargets {
 public:
  explicit GradientTargets(const FlatLayout& layout)
      : layout_(layout), written_(layout.parameters().size(), false) {}
  /// Forgets all gradients: each parameter's next ones overwrite.
  void reset() { std::fill(written_.begin(), written_.end(), false); }
  /// The targets of the parameters of `part` in `segments`, the whole gradients of each segment;
  /// empty targets for parameters that are frozen or in tiles. A parameter that already holds
  /// gradients is added to, and all of them hold some afterwards. Valid until the next unit or
  /// tile.
  std::span<const model::GradientTarget> of(model::PartId part,
                                            const TypedVector<SegmentId, TensorView>& segments);

 private:
  const FlatLayout& layout_;
  TypedVector<ParameterId, bool> written_;
  std::vector<model::GradientTarget> unit_;
  std::vector<model::GradientTarget> tile_;
};

/// The most elements that the backward of one part writes in segments that only it uses, over all
/// units without their tiles, or over all tiles.
std::int64_t largest_own_numel(const FlatLayout& layout, bool tiles);
/// The same for one part.
std::int64_t own_numel(const FlatLayout& layout, model::PartId part);
/// Elements of all shared segments that have gradients.
std::int64_t shared_numel(const FlatLayout& layout);

/// Zeroes the elements of a segment that belong to no parameter, so that they do not count in sums
/// and norms. Asynchronous on `stream`.
void zero_padding(const FlatLayout& layout,
                  const Segment& segment,
                  TensorView values,
                  StreamView stream);

}  // namespace dstrain::zero
