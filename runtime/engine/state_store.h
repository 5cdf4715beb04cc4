#pragma once
#include <span>

#include "runtime/device/stream.h"

namespace dstrain::engine {

/// Where a rank's optimizer states live between steps: on the device, or in a slower tier. A run
/// is one OptimizerShard's worth of states. Work goes to `stream`, or to streams ordered with it.
class StateStore {
 public:
  virtual ~StateStore() = default;
  /// The states of run `index` on the device, valid until release(); zero before the first use.
  virtual std::span<const std::span<float>> acquire(int index, StreamView stream) = 0;
  /// The states have been updated.
  virtual void release(int index, StreamView stream) = 0;
};

}  // namespace dstrain::engine
