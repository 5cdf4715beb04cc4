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

int evaluate_model(const TrainSetup& setup, session::JoinedRank& rank) {
  const config::TrainSettings& settings = setup.settings;
  const WorkerEnv& worker = rank.worker();
  ProgressPage& progress = rank.progress();
  const session::Remedies remedies = remedies_for(setup);
  session::RankSession session(session::session_inputs(setup, rank, remedies));
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
