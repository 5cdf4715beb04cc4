#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/engine/frame.h"
#include "runtime/tensor/interval_plan.h"

namespace dstrain::engine {

/// The memory that each call of a frame's schedule uses, as indices into `intervals`.
struct FramePlan {
  struct Copy {
    int device = 0;
    int host = 0;  ///< index into `host_intervals`
  };
  struct Call {
    int unit = 0;
    Pass pass = Pass::forward;
    std::vector<int> inputs{};
    std::vector<int> outputs{};
    std::vector<int> output_gradients{};
    std::vector<int> input_gradients{};
    std::vector<bool> input_gradient_accumulates{};
    int saved = -1;  ///< -1: none
    int workspace = -1;
    std::vector<Copy> fetches{};  ///< as in FrameCall
    std::vector<Copy> stores{};
  };
  std::vector<Interval> intervals;
  std::vector<Interval> host_intervals;
  std::vector<Call> calls;
  std::vector<std::unique_ptr<const model::PlannedUnit>> units;  ///< null for those never called
  std::map<std::string, model::ActivationSpec> activations;
  FrameBytes bytes;
};

/// Records the schedule and plans its memory. Throws Error{internal} unless each activation is
/// written once, before it is read.
FramePlan plan_frame(const model::Model& model, Frame::Options options);

}  // namespace dstrain::engine
