#include "runtime/model/recorded_unit.h"

#include "runtime/model/step_runner.h"

namespace dstrain::model {

void RecordedUnit::forward(const UnitCall& call, StreamView stream) const {
  const Placement placement = place_buffers(record_, plan_, call.shape);
  const StepRunner runner({record_, plan_, placement}, call, stream);
  for (int i = 0; i < plan_.forward_steps; ++i)
    runner.run(plan_.steps[static_cast<std::size_t>(i)]);
}

void RecordedUnit::backward(const UnitCall& call, StreamView stream) const {
  const Placement placement = place_buffers(record_, plan_, call.shape);
  const StepRunner runner({record_, plan_, placement}, call, stream);
  for (std::size_t i = static_cast<std::size_t>(plan_.forward_steps); i < plan_.steps.size(); ++i) {
    runner.run(plan_.steps[i]);
  }
}

}  // namespace dstrain::model
