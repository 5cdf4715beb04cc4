#include <filesystem>

#include <fmt/core.h>

#include "cmd/dstraind/commands.h"
#include "cmd/dstraind/stop_signal.h"
#include "cmd/train_setup.h"
#include "runtime/base/log.h"
#include "runtime/base/parallel_for.h"
#include "runtime/base/worker_env.h"
#include "runtime/comm/make_communicator.h"
#include "runtime/engine/model_saver.h"
#include "runtime/engine/trainer.h"
#include "runtime/optim/adamw.h"
#include "zero/resident_states.h"
#include "zero/sharded_store.h"

namespace dstrain::cmd {
namespace {

/// The device's memory, counted by category and bounded by the budget.
struct DeviceMemory {
  explicit DeviceMemory(Bytes limit)
      : parameters(host, ledger, {MemoryCategory::parameters, limit}),
        gradients(host, ledger, {MemoryCategory::gradients, limit}),
        optimizer(host, ledger, {MemoryCategory::optimizer, limit}),
        activations(host, ledger, {MemoryCategory::activations, limit}),
        buffers(host, ledger, {MemoryCategory::buffers, limit}) {}
  HostMemory host;
  MemoryLedger ledger;
  TrackedMemory parameters;
  TrackedMemory gradients;
  TrackedMemory optimizer;
  TrackedMemory activations;
  TrackedMemory buffers;
};

/// The parts of a training rank, in the order in which they depend on each other.
class TrainingRank {
 public:
  TrainingRank(TrainSetup setup, const WorkerEnv& worker)
      : setup_(std::move(setup)),
        worker_(worker),
        memory_(worker.device_memory_bytes),
        world_(comm::join_world(worker)),
        runs_(zero::optimizer_runs(*setup_.layout, setup_.settings.zero.stage)),
        optimizer_(setup_.settings.optimizer),
        states_(runs_, optimizer_.state_names().size(), memory_.optimizer, stream_),
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

  engine::Trainer::Outcome train() {
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
    if (worker_.rank == 0) metrics.emplace(make_output_file("metrics.jsonl"));
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
                             .say = [](const std::string& line) { say(line); },
                             .stop_requested = stop_requested},
                            stream_);
    return trainer.run();
  }

  void save() {
    engine::save_model(setup_.model, store_, *world_.communicator, setup_.settings.output.directory,
                       stream_);
  }

  std::filesystem::path make_output_file(const std::string& name) const {
    const std::filesystem::path directory(setup_.settings.output.directory);
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error) fail_errno(error.value(), "create " + directory.string());
    return directory / name;
  }

  static void say(const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }

 private:
  TrainSetup setup_;
  WorkerEnv worker_;
  Stream stream_{Stream::Mode::inline_on_caller};
  DeviceMemory memory_;
  comm::World world_;
  ops::Matmuls matmuls_;
  std::vector<std::int64_t> runs_;
  optim::AdamW optimizer_;
  zero::ResidentStates states_;
  zero::ShardedStore store_;
  engine::Engine engine_;
};

void announce(const TrainSetup& setup, const WorkerEnv& worker) {
  for (const std::string& warning : setup.settings.warnings) log_warning(warning);
  const std::int64_t psi = setup.layout->numel();
  log_info(
      fmt::format("{}: {} parameters, {} rank(s), ZeRO stage {}, {} sequences of {} tokens "
                  "per step",
                  setup.model.name, psi, worker.world_size, setup.settings.zero.stage,
                  setup.settings.train_batch_size, setup.settings.data.block_size));
  log_info(zero::describe(setup.plan,
                          zero::formula_bytes(psi, setup.settings.zero.stage, worker.world_size)));
}

}  // namespace

int train_command(std::span<const std::string> arguments) {
  catch_stop_signals();
  flush_denormals_in_compute_threads();
  const WorkerEnv worker = read_worker_env();
  TrainSetup setup = set_up_training(arguments, {worker.world_size, worker.device_memory_bytes});
  const std::string output = setup.settings.output.directory;
  if (worker.rank == 0) announce(setup, worker);
  TrainingRank rank(std::move(setup), worker);
  const engine::Trainer::Outcome outcome = rank.train();
  rank.save();
  if (!outcome.stopped) return status::done;
  if (worker.rank == 0) {
    log_warning(
        fmt::format("stopped on request after step {}; the weights are in {}, the "
                    "optimizer's state is not saved",
                    outcome.steps, output));
  }
  return status::interrupted;
}

}  // namespace dstrain::cmd
