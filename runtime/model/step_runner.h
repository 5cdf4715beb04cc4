#pragma once
#include "runtime/model/unit_plan.h"

namespace dstrain::model {

/// Runs the steps of a plan for one call of a unit. All arguments must outlive it.
class StepRunner {
 public:
  struct Unit {
    const UnitRecord& record;
    const UnitPlan& plan;
    const Placement& placement;
  };
  /// Values and kept tensors are in call.saved and call.workspace, at the offsets of the placement.
  StepRunner(Unit unit, const UnitCall& call, StreamView stream)
      : unit_(unit), call_(call), stream_(stream) {}
  void run(const Step& step) const;

 private:
  [[nodiscard]] TensorView view(int buffer) const;
  [[nodiscard]] LayerCall call_of(const LayerUse& use) const;
  [[nodiscard]] InputGradient gradient_of(const LayerUse::Gradient& gradient) const;
  /// Whether the engine wants a gradient added to the existing one.
  [[nodiscard]] bool accumulates(int buffer) const;
  void run_layers(const Step& step) const;
  void add(const Step& step) const;

  Unit unit_;
  const UnitCall& call_;
  StreamView stream_;
};

}  // namespace dstrain::model
