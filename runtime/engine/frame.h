#pragma once
#include <span>
#include <vector>

#include "runtime/model/model.h"

namespace dstrain::engine {

/// What the units of a micro-batch are run for.
enum class FrameMode {
  training,       ///< forward and backward; what a unit saves is kept in between
  checkpointing,  ///< likewise, but backward runs the unit's forward again instead
  inference,      ///< forward only
};

enum class Pass { forward, backward };

/// One entry of the recorded schedule, with the memory that the call gets. Spans and views are
/// fixed for the life of the frame.
struct FrameCall {
  int unit = 0;
  Pass pass = Pass::forward;
  bool recompute = false;  ///< backward: run forward first
  std::vector<TensorView> inputs{};
  std::vector<TensorView> outputs{};
  std::vector<TensorView> output_gradients{};
  std::vector<model::GradientTarget> input_gradients{};
  std::span<std::byte> saved{};
  std::span<std::byte> workspace{};
};

/// The memory of one micro-batch in flight: activations, their gradients, what units save, and
/// work space, each for just as long as the schedule needs it, in one block laid out before step 0.
///
/// The schedule of training is forward of units 0 ... U-2, then backward of U-1 ... 0: the last
/// unit computes the loss and its gradients in one go.
class Frame {
 public:
  struct Options {
    model::BatchShape shape;
    FrameMode mode = FrameMode::training;
  };
  /// Lies in `block`, which holds bytes() and outlives the frame.
  Frame(const model::Model& model, Options options, std::span<std::byte> block);

  static Bytes bytes(const model::Model& model, Options options);

  [[nodiscard]] std::span<const FrameCall> calls() const { return calls_; }

 private:
  std::vector<FrameCall> calls_;
};

}  // namespace dstrain::engine
