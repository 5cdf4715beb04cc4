#pragma once
#include <memory>
#include <span>
#include <vector>

#include "runtime/model/model.h"

namespace dstrain::engine {

/// How the units of a micro-batch are run.
enum class FrameMode {
  training,       ///< forward and backward; saved values are kept in between
  checkpointing,  ///< the same, but backward recomputes the saved values
  /// The same, and activations that are not used for a while are in host memory meanwhile.
  host_checkpointing,
  inference,  ///< forward only
};

enum class Pass { forward, backward };

/// One call of a unit.
struct ScheduledCall {
  int unit = 0;
  Pass pass = Pass::forward;
};
/// The calls of one micro-batch, in order.
using Schedule = std::vector<ScheduledCall>;

/// The forward of units 0 ... U-2, then the backward of U-1 ... 0: the last unit computes the loss
/// and its gradients together.
Schedule training_schedule(const model::Model& model);
/// The forward of all units but those whose activations have no rows: an encoder runs once, for the
/// first token of its target, and later ones find what they need of it in the cache.
Schedule inference_schedule(const model::Model& model, model::BatchShape shape);

/// Bytes of a frame in each tier.
struct FrameBytes {
  Bytes device = 0;
  Bytes host = 0;
};

/// A copy of an activation between device and host.
struct FrameCopy {
  TensorView source;  ///< u8
  TensorView target;  ///< u8
};

/// One entry of the recorded schedule, with the memory of the call. The views are fixed for the
/// life of the frame.
struct FrameCall {
  int unit = 0;
  const model::PlannedUnit* planned = nullptr;  ///< that unit, for the frame's shape
  Pass pass = Pass::forward;
  bool recompute = false;  ///< backward: run forward first
  std::vector<TensorView> inputs{};
  std::vector<TensorView> outputs{};
  std::vector<TensorView> output_gradients{};
  std::vector<model::GradientTarget> input_gradients{};
  TensorView saved{};                ///< u8
  TensorView workspace{};            ///< u8
  std::vector<FrameCopy> fetches{};  ///< to the device while this call runs, for the next one
  std::vector<FrameCopy> stores{};   ///< to the host after this call, before the next but one
};

struct FramePlan;

/// A schedule and the memory of one micro-batch: activations, their gradients, values that units
/// save, and workspace. Each is allocated only while the schedule needs it, in one block of the
/// device, and one of the host for FrameMode::host_checkpointing. Both are laid out before step 0.
class Frame {
 public:
  struct Options {
    model::BatchShape shape;
    FrameMode mode = FrameMode::training;
  };
  struct Blocks {
    TensorView device;  ///< u8
    HostView host{};    ///< u8
  };
  /// Uses `blocks`, which hold bytes() and, like the model, outlive the frame.
  Frame(const model::Model& model, Options options, Blocks blocks);
  /// The same with a plan for a shape that is as large in each extent.
  Frame(const model::Model& model,
        std::shared_ptr<const FramePlan> plan,
        model::BatchShape shape,
        Blocks blocks);

  static FrameBytes bytes(const model::Model& model, Options options);

  [[nodiscard]] std::span<const FrameCall> calls() const { return calls_; }

 private:
  std::shared_ptr<const FramePlan> plan_;
  std::vector<FrameCall> calls_;
};

}  // namespace dstrain::engine
