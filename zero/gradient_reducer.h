#pragma once
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
  virtual std::span<const model::GradientTarget> targets(int part, StreamView stream) = 0;
  /// The backward of `part` is done.
  virtual void reduce(int part, StreamView stream) = 0;
  /// This rank's shard of the summed gradients of a segment; empty when it lies on a disk, or where
  /// there are none.
  [[nodiscard]] virtual TensorView own(int segment) const = 0;
  /// The summed gradients for what a rank updates of a segment.
  [[nodiscard]] virtual TensorView updated(int segment) const = 0;
};

/// Which segments still wait for the backward of a unit that uses them; of those that have
/// gradients.
class PendingUses {
 public:
  explicit PendingUses(const FlatLayout& layout);
  void reset() { pending_ = users_; }
  /// The backward of `part` is done: returns the segments that are complete now.
  std::span<const int> complete(int part);

 private:
  const FlatLayout& layout_;
  std::vector<int> users_;  ///< per segment
  std::vector<int> pending_;
  std::vector<int> completed_;
};

/// Where gradients go, for a unit and for one of its tiles at a time.
class GradientTargets {
 public:
  explicit GradientTargets(const FlatLayout& layout)
      : layout_(layout), written_(layout.parameters().size(), false) {}
  /// Nothing holds gradients any more.
  void reset() { written_.assign(written_.size(), false); }
  /// Those of what `part` has, in `segments` (per segment: its whole gradients); empty ones for
  /// what is in tiles or frozen. What holds gradients is added to; all of it does after that. Until
  /// the next unit or tile.
  std::span<const model::GradientTarget> of(int part, std::span<const TensorView> segments);

 private:
  const FlatLayout& layout_;
  std::vector<bool> written_;  ///< per parameter
  std::vector<model::GradientTarget> unit_;
  std::vector<model::GradientTarget> tile_;
};

/// Elements that the backward of a part writes in segments that it alone uses: of the largest unit
/// without its tiles, or of the largest tile.
std::int64_t largest_own_numel(const FlatLayout& layout, bool tiles);
/// Of one part.
std::int64_t own_numel(const FlatLayout& layout, int part);
/// Elements of all shared segments that have gradients.
std::int64_t shared_numel(const FlatLayout& layout);

/// Makes the elements of a segment that belong to no parameter zero, so that they stay out of
/// sums and norms. Asynchronous on `stream`.
void zero_padding(const FlatLayout& layout,
                  const Segment& segment,
                  TensorView values,
                  StreamView stream);

}  // namespace dstrain::zero
