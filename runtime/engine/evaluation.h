#pragma once
#include "runtime/comm/control/control_group.h"
#include "runtime/data/batch_loader.h"
#include "runtime/engine/engine.h"

namespace dstrain::engine {

/// Returns the mean loss, natural log, over the labels of all batches of all ranks; the same on
/// every rank. Throws Error{diverged} on every rank if it is not finite. Collective.
double evaluate(Engine& engine, const data::EvaluationLoader& data, comm::ControlGroup& control);

}  // namespace dstrain::engine
