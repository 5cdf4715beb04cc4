#pragma once
#include "runtime/engine/state_store.h"
#include "runtime/optim/optimizer.h"
#include "runtime/tensor/tensor_view.h"
#include "zero/state_runs.h"

namespace dstrain::zero {

/// Updates the states of a run, and with them `parameters`: its own, as units see them. The lease
/// has the gradients, too. Asynchronous on `stream`.
void update_run(const StateRun& run,
                const engine::StateLease& lease,
                TensorView parameters,
                const optim::Optimizer& optimizer,
                const optim::StepScalars& scalars,
                StreamView stream);

}  // namespace dstrain::zero
