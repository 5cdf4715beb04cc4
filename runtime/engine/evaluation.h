#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "runtime/comm/control/control_group.h"
#include "runtime/data/batch_loader.h"
#include "runtime/engine/engine.h"

namespace dstrain::engine {

/// The losses of some labels.
struct Losses {
  double sum = 0;           ///< natural log
  std::int64_t labels = 0;  ///< that count
  std::int64_t bytes = 0;   ///< of their text, as far as that is known
};

/// What an evaluation does besides adding losses.
struct EvaluationOptions {
  std::span<const std::int32_t> text_bytes{};         ///< by token; empty: not known
  std::function<void(std::int64_t done)> progress{};  ///< called after each batch
};

/// Runs a batch without gradients, and adds its losses. Collective.
void add_losses(Engine& engine, const MicroBatch& batch, Losses& own);

/// Returns the sum of what all ranks have added; the same on every rank. Throws Error{diverged} on
/// every rank if their mean is not finite. Collective.
Losses total_losses(const Losses& own, comm::ControlGroup& control);
/// Returns the mean loss of the same.
double mean_loss(const Losses& own, comm::ControlGroup& control);

/// Returns the losses of all batches of all ranks; the same on every rank. Throws Error{diverged}
/// on every rank if their mean is not finite. Collective.
Losses add_all_losses(Engine& engine,
                      const data::EvaluationLoader& data,
                      comm::ControlGroup& control,
                      const EvaluationOptions& options = {});

/// Returns the mean loss, natural log, over the labels of all batches of all ranks; the same on
/// every rank. Throws Error{diverged} on every rank if it is not finite. Collective.
double evaluate(Engine& engine, const data::EvaluationLoader& data, comm::ControlGroup& control);

}  // namespace dstrain::engine
