#include "cmd/dstraind/evaluate_model.h"

#include <cstdio>

#include <fmt/core.h>

#include "runtime/engine/evaluation.h"
#include "runtime/monitor/eval_results.h"
#include "runtime/monitor/progress_line.h"
#include "runtime/session/rank_session.h"

namespace dstrain::cmd {
namespace {

/// The directory may be that of a training run, whose metrics.jsonl stays as it is.
void report(const monitor::EvalResults& results, const std::string& directory) {
  fmt::print("{}\n", monitor::describe_held_out(results.loss));
  std::fflush(stdout);
  monitor::write_eval_results(directory, results);
}

}  // namespace

int evaluate_model(TrainSetup& setup, const WorkerEnv& worker, ProgressPage& progress) {
  const config::TrainSettings& settings = setup.settings;
  session::JoinedRank rank(worker, setup.model.device, progress);
  session::RankSession session(session_inputs(setup, rank));
  progress.enter(RunPhase::loading);
  session.store().load({*setup.initial_parameters}, session.streams().compute);
  const data::EvaluationLoader loader(
      *setup.data.validation_data, {settings.evaluation.batch_size, worker.rank, worker.world_size},
      setup.data.validation_samples);
  progress.enter(RunPhase::evaluating);
  const double begin = rank.clock().now_seconds();
  const double loss = engine::evaluate(session.engine(), loader, session.control_group());
  if (worker.rank == 0) {
    report({.loss = loss,
            .samples = setup.data.validation_samples.count,
            .seconds = rank.clock().now_seconds() - begin},
           settings.output.directory);
  }
  session.control_group().barrier();
  return status::done;
}

}  // namespace dstrain::cmd
