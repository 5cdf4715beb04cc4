#pragma once
#include "runtime/comm/control/control_group.h"
#include "runtime/data/batch_loader.h"
#include "runtime/engine/engine.h"

namespace dstrain::engine {

/// The losses of some labels.
struct Losses {
  double sum = 0;           ///< natural log
  std::int64_t labels = 0;  ///< that count
};

/// Runs a batch without gradients, and adds its losses. Collective.
void add_losses(Engine& engine, const MicroBatch& batch, Losses& own);

/// Returns the mean over what all ranks have added; the same on every rank. Throws Error{diverged}
/// on every rank if it is not finite. Collective.
double mean_loss(const Losses& own, comm::ControlGroup& control);

/// Returns the mean loss, natural log, over the labels of all batches of all ranks; the same on
/// every rank. Throws Error{diverged} on every rank if it is not finite. Collective.
double evaluate(Engine& engine, const data::EvaluationLoader& data, comm::ControlGroup& control);

}  // namespace dstrain::engine
