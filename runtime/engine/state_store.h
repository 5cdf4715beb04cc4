#pragma once
#include <cstdint>
#include <span>

#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::engine {

/// What an optimizer's states are wanted for.
enum class StateUse : std::uint8_t {
  inspect,  ///< they stay as they are
  replace,  ///< all of them get new values from elsewhere: what they hold now means nothing
  update,   ///< a step: the gradients come too, if they lie with the states
};

/// The states of a run, and its summed gradients where they lie with the states; else empty.
struct StateLease {
  std::span<const TensorView> states;  ///< f32, flat
  TensorView gradients{};              ///< likewise
};

/// Where a rank's optimizer states live between steps: on the device, or in a slower tier. A run
/// is one OptimizerShard's worth of states. Work goes to `stream`, or to streams ordered with it.
class StateStore {
 public:
  virtual ~StateStore() = default;
  /// The states of `run` where they can be worked on, valid until release(). Each is replaced
  /// before any other use. Runs are best used in order.
  virtual StateLease acquire(int run, StateUse use, StreamView stream) = 0;
  virtual void release(int run, StateUse use, StreamView stream) = 0;
};

}  // namespace dstrain::engine
