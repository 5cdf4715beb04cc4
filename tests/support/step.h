#pragma once
#include <cmath>

#include "runtime/comm/control/control_group.h"
#include "runtime/engine/engine.h"
#include "runtime/ops/square_sum.h"

namespace dstrain::test {

/// A whole step, as the trainer takes it: the ranks count their labels and tell each other sums.
inline engine::StepResult take_step(engine::Engine& engine,
                                    comm::ControlGroup& control,
                                    engine::StepInput input) {
  for (const std::int64_t labels : control.gather(engine::counted_labels(input.micro_batches))) {
    input.labels += labels;
  }
  return engine.update(input, control.gather(engine.accumulate(input)));
}

/// The L2 norm of all gradients.
inline double gradient_norm(engine::ParameterStore& store,
                            comm::ControlGroup& control,
                            StreamView stream) {
  ExactSum room;
  ExactSum total;
  const ExactSum own = store.gradient_squares(ops::view_of(room), stream);
  for (const auto& squares : control.gather(own)) total.add(squares);
  return std::sqrt(total.value());
}

}  // namespace dstrain::test
