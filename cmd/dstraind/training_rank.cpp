#include "cmd/dstraind/training_rank.h"

#include <cstdio>

#include <fmt/core.h>

#include "cmd/dstraind/stop_signal.h"
#include "runtime/engine/model_saver.h"
#include "runtime/engine/profile_report.h"

namespace dstrain::cmd {
namespace {

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

std::unique_ptr<profile::Timeline> make_timeline(const TrainSetup& setup, const Clock& clock) {
  if (setup.settings.output.profile.empty()) return nullptr;
  return std::make_unique<profile::Timeline>(clock);
}

std::unique_ptr<engine::RecordedCommunicator> record(comm::Communicator& communicator,
                                                     profile::Timeline* timeline) {
  if (timeline == nullptr) return nullptr;
  return std::make_unique<engine::RecordedCommunicator>(communicator, *timeline);
}

}  // namespace

TrainingRank::TrainingRank(TrainSetup setup, const WorkerEnv& worker)
    : setup_(std::move(setup)),
      worker_(worker),
      communication_(setup_.store.overlap.enabled ? Stream::Mode::worker_thread
                                                  : Stream::Mode::inline_on_caller),
      streams_(setup_.store.overlap.enabled ? Streams(compute_, communication_)
                                            : Streams(compute_)),
      world_(comm::join_world(worker)),
      memory_(worker.device_memory_bytes, world_.communicator->memory()),
      timeline_(make_timeline(setup_, clock_)),
      recorded_(record(*world_.communicator, timeline_.get())),
      communicator_(recorded_ ? *recorded_ : *world_.communicator),
      runs_(zero::optimizer_runs(*setup_.layout, setup_.settings.zero.stage)),
      optimizer_(setup_.settings.optimizer),
      states_(runs_,
              zero::state_count(optimizer_.state_names().size(), setup_.model.dtype),
              memory_.optimizer,
              compute_),
      store_({*setup_.layout,
              communicator_,
              {memory_.parameters, memory_.gradients, memory_.buffers},
              &optimizer_,
              &states_,
              timeline_.get()},
             setup_.store,
             streams_),
      engine_({setup_.model, store_, communicator_, matmuls_, memory_.activations, timeline_.get()},
              setup_.engine,
              streams_) {
  store_.load(*setup_.initial_parameters, compute_);
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
  if (timeline_) {
    world_.communicator->barrier(streams_.communication);
    timeline_->restart();
  }
  engine::Trainer trainer({.settings = settings,
                           .model = setup_.model,
                           .engine = engine_,
                           .communicator = communicator_,
                           .device_memory = memory_.ledger,
                           .planned_memory = setup_.plan.bytes,
                           .clock = clock_,
                           .training_data = training,
                           .validation_data = validation ? &*validation : nullptr,
                           .metrics = metrics ? &*metrics : nullptr,
                           .timeline = timeline_.get(),
                           .say = say,
                           .stop_requested =
                               [] {
                                 return stop_signal() != 0;
                               }},
                          streams_);
  return trainer.run();
}

void TrainingRank::save() {
  engine::save_model(setup_.model, store_, communicator_, setup_.settings.output.directory,
                     streams_);
  if (!timeline_) return;
  // Not through the recorded communicator: its spans are being read.
  engine::write_profile(*timeline_, setup_.model, *world_.communicator,
                        setup_.settings.output.profile, streams_.communication);
}

}  // namespace dstrain::cmd
