#pragma once
#include <span>

#include "runtime/engine/parameter_store.h"
#include "runtime/optim/exact_sum.h"

namespace dstrain::zero {

/// Takes a rank's shards of the gradients, summed over the ranks, when they do not stay in memory.
/// begin() and put() are for the communicating stream.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  /// What is put from now on belongs to this micro step.
  virtual void begin(engine::MicroStep micro_step) = 0;
  /// A put() of the segment is about to be launched; for the computing thread.
  virtual void announce(int segment, engine::MicroStep micro_step) = 0;
  /// Takes the shard of a segment, and adds it to what the micro steps before have put there. The
  /// values may change once this returns. Throws Error{io}.
  virtual void put(int segment, std::span<const float> gradients) = 0;
  /// That put() is over, or will not come after a failure. Also for the communicating stream.
  virtual void finish(int segment) = 0;
};

}  // namespace dstrain::zero
