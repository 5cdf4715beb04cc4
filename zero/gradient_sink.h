#pragma once
#include <span>

#include "runtime/engine/parameter_store.h"
#include "runtime/optim/exact_sum.h"

namespace dstrain::zero {

/// Takes a rank's shards of the gradients, summed over the ranks, when they do not stay in memory.
/// Not thread-safe.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  /// What is put from now on belongs to this micro step.
  virtual void begin(engine::MicroStep micro_step) = 0;
  /// Takes the shard of a segment, and adds it to what the micro steps before have put there. The
  /// values may change once this returns. Throws Error{io}.
  virtual void put(int segment, std::span<const float> gradients) = 0;
  /// Of all that was put, once the last micro step is done.
  [[nodiscard]] virtual const optim::ExactSum& squares() const = 0;
};

}  // namespace dstrain::zero
