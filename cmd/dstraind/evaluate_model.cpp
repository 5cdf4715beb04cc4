#include "cmd/dstraind/evaluate_model.h"

#include <cstdio>

#include <fmt/core.h>

#include "cmd/dstraind/rank_disks.h"
#include "cmd/dstraind/rank_memory.h"
#include "cmd/dstraind/rank_streams.h"
#include "cmd/dstraind/store_memory.h"
#include "runtime/backend/open_backend.h"
#include "runtime/base/clock.h"
#include "runtime/comm/make_communicator.h"
#include "runtime/device/crossing_tier.h"
#include "runtime/engine/collective_records.h"
#include "runtime/engine/evaluation.h"
#include "runtime/engine/observed_control_group.h"
#include "runtime/monitor/eval_results.h"
#include "runtime/monitor/progress_line.h"
#include "runtime/rank/rank_control.h"
#include "zero/sharded_store.h"

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
  const std::unique_ptr<Backend> backend = open_backend({setup.model.device, worker.local_rank});
  const RankStreams own_streams(*backend, setup);
  const Streams streams = own_streams.views();
  progress.enter(RunPhase::meeting);
  const RankControl control_socket = RankControl::from_environment();
  comm::World world = comm::join_world(worker, setup.alike, comm::news_for(control_socket));
  progress.enter(RunPhase::loading);
  engine::CollectiveRecords records(nullptr, &progress);
  engine::ObservedControlGroup control(*world.control, progress);
  RankMemory memory(*backend, worker.device_memory_bytes, world.communicator->memory());
  const std::unique_ptr<comm::Communicator> communicator =
      backend->connect({.communicator = std::move(world.communicator),
                        .control = *world.control,
                        .staging = memory.of(setup.store.offload.staging).staging,
                        .timeout_seconds = worker.timeout_seconds});
  communicator->set_observer(&records);
  const RankDisks disks(setup, worker, memory, nullptr);
  zero::ShardedStore store(
      {*setup.layout, *communicator, store_memory(memory, setup.store.offload, disks)}, setup.store,
      streams);
  engine::Engine engine(
      {.model = setup.model,
       .store = store,
       .activations = memory.device.activations,
       .host_activations = memory.of(crossing_tier(setup.model.device)).activations,
       .progress = &progress},
      setup.engine, streams);
  store.load({*setup.initial_parameters}, streams.compute);
  const data::EvaluationLoader loader(
      *setup.validation_data, {settings.evaluation.batch_size, worker.rank, worker.world_size},
      setup.validation_samples);
  progress.enter(RunPhase::evaluating);
  const SteadyClock clock;
  const double begin = clock.now_seconds();
  const double loss = engine::evaluate(engine, loader, control);
  if (worker.rank == 0) {
    report({.loss = loss,
            .samples = setup.validation_samples.count,
            .seconds = clock.now_seconds() - begin},
           settings.output.directory);
  }
  control.barrier();
  return status::done;
}

}  // namespace dstrain::cmd
