#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "runtime/engine/parameter_store.h"
#include "zero/flat_layout.h"

namespace dstrain::zero {

/// Collects the gradients of a step's micro steps and sums them over the ranks. After the last
/// micro step, own(segment) is this rank's shard of the sum.
class GradientReducer {
 public:
  virtual ~GradientReducer() = default;
  virtual void begin(engine::MicroStep micro_step) = 0;
  /// Where the backward of `part` puts the gradients of the parameters it uses.
  virtual std::span<const model::GradientTarget> targets(model::PartId part, StreamView stream) = 0;
  /// The backward of `part` is done.
  virtual void reduce(model::PartId part, StreamView stream) = 0;
  /// This rank's shard of the summed gradients of a segment; empty when it lies on a disk, or where
  /// there are none.
  [[nodiscard]] virtual TensorView own(SegmentId segment) const = 0;
  /// The summed gradients for what a rank updates of a segment.
  [[nodiscard]] virtual TensorView updated(SegmentId segment) const = 0;
};

/// Which segments still wait for the backward of a unit that uses them; of those that have
/// gradients.
class PendingUses {
 public:
  explicit PendingUses(const FlatLayout& layout);
  void reset() { pending_ = users_; }
  /// The backward of `part` is done: returns the segments that are complete now.
  std::span<const SegmentId> complete(model::PartId part);

 private:
  const FlatLayout& layout_;
  TypedVector<SegmentId, int> users_;
  TypedVector<SegmentId, int> pending_;
  std::vector<SegmentId> completed_;
};

/// Where gradients go, for a unit and for one of its tiles at a time.
class GradientTargets {
 public:
  explicit GradientTargets(const FlatLayout& layout)
      : layout_(layout), written_(layout.parameters().size(), false) {}
  /// Nothing holds gradients any more.
  void reset() { std::fill(written_.begin(), written_.end(), false); }
  /// Those of what `part` has, in `segments` (per segment: its whole gradients); empty ones for
  /// what is in tiles or frozen. What holds gradients is added to; all of it does after that. Until
  /// the next unit or tile.
  std::span<const model::GradientTarget> of(model::PartId part,
                                            const TypedVector<SegmentId, TensorView>& segments);

 private:
  const FlatLayout& layout_;
  TypedVector<ParameterId, bool> written_;
  std::vector<model::GradientTarget> unit_;
  std::vector<model::GradientTarget> tile_;
};

/// Elements that the backward of a part writes in segments that it alone uses: of the largest unit
/// without its tiles, or of the largest tile.
std::int64_t largest_own_numel(const FlatLayout& layout, bool tiles);
/// Of one part.
std::int64_t own_numel(const FlatLayout& layout, model::PartId part);
/// Elements of all shared segments that have gradients.
std::int64_t shared_numel(const FlatLayout& layout);

/// Makes the elements of a segment that belong to no parameter zero, so that they stay out of
/// sums and norms. Asynchronous on `stream`.
void zero_padding(const FlatLayout& layout,
                  const Segment& segment,
                  TensorView values,
                  StreamView stream);

}  // namespace dstrain::zero
