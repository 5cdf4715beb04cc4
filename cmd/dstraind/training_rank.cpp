#include "cmd/dstraind/training_rank.h"

#include <cstdio>

#include <fmt/core.h>

#include "cmd/dstraind/stop_signal.h"
#include "runtime/engine/model_saver.h"

namespace dstrain::cmd {
namespace {

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

}  // namespace

TrainingRank::TrainingRank(TrainSetup setup, const WorkerEnv& worker)
    : setup_(std::move(setup)),
      worker_(worker),
      memory_(worker.device_memory_bytes),
      world_(comm::join_world(worker)),
      runs_(zero::optimizer_runs(*setup_.layout, setup_.settings.zero.stage)),
      optimizer_(setup_.settings.optimizer),
      states_(runs_,
              zero::state_count(optimizer_.state_names().size(), setup_.model.dtype),
              memory_.optimizer,
              stream_),
      store_({*setup_.layout,
              *world_.communicator,
              {memory_.parameters, memory_.gradients, memory_.buffers},
              &optimizer_,
              &states_},
             {setup_.settings.zero.stage, setup_.settings.zero.reduce_bucket_numel},
             stream_),
      engine_({setup_.model, store_, *world_.communicator, matmuls_, memory_.activations},
              setup_.engine,
              stream_) {
  store_.load(*setup_.initial_parameters, stream_);
}

engine::Trainer::Outcome TrainingRank::train() {
  const config::TrainSettings& settings = setup_.settings;
  const data::LoaderPlace place{settings.data.block_size, settings.micro_batch_size, worker_.rank,
                                worker_.world_size};
  const data::BatchLoader training(*setup_.training_tokens, place,
                                   {.global_batch = settings.train_batch_size,
                                    .shuffle = settings.data.shuffle,
                                    .seed = settings.seed});
  std::optional<data::EvaluationLoader> validation;
  if (setup_.validation_tokens) validation.emplace(*setup_.validation_tokens, place);
  std::optional<monitor::MetricsFile> metrics;
  if (worker_.rank == 0) metrics.emplace(settings.output.directory + "/metrics.jsonl");
  const SteadyClock clock;
  engine::Trainer trainer({.settings = settings,
                           .model = setup_.model,
                           .engine = engine_,
                           .communicator = *world_.communicator,
                           .device_memory = memory_.ledger,
                           .clock = clock,
                           .training_data = training,
                           .validation_data = validation ? &*validation : nullptr,
                           .metrics = metrics ? &*metrics : nullptr,
                           .say = say,
                           .stop_requested =
                               [] {
                                 return stop_signal() != 0;
                               }},
                          stream_);
  return trainer.run();
}

void TrainingRank::save() {
  engine::save_model(setup_.model, store_, *world_.communicator, setup_.settings.output.directory,
                     stream_);
}

}  // namespace dstrain::cmd
