#include "cmd/train_setup.h"

#include <algorithm>

#include "cmd/model_loading.h"
#include "cmd/offload_setup.h"
#include "runtime/config/resolve.h"
#include "runtime/config/train_options.h"
#include "runtime/data/batch_loader.h"
#include "runtime/device/locked_memory.h"
#include "runtime/model/gpt2.h"
#include "runtime/model/random_source.h"
#include "runtime/optim/adamw.h"

namespace dstrain::cmd {
namespace {

constexpr std::int64_t default_block_size = 1024;

std::unique_ptr<data::TokenStream> open_tokens(const std::string& path,
                                               const config::DataSettings& settings,
                                               std::int64_t vocabulary) {
  auto tokens =
      std::make_unique<data::TokenStream>(path, data::TokenOptions{vocabulary, settings.tokenizer});
  if (data::sample_count(*tokens, settings.block_size) == 0) {
    fail(ErrorCode::input, "{}: {} tokens are too few for one sample of --block_size {}", path,
         tokens->size(), settings.block_size);
  }
  return tokens;
}

void open_data(TrainSetup& setup, config::DataSettings data) {
  if (data.block_size == 0) data.block_size = std::min(default_block_size, setup.model.positions);
  if (data.block_size > setup.model.positions) {
    fail(ErrorCode::usage, "--block_size {} is longer than the model's {} positions",
         data.block_size, setup.model.positions);
  }
  setup.training_tokens = open_tokens(data.train_file, data, setup.model.vocabulary);
  if (!data.validation_file.empty()) {
    setup.validation_tokens = open_tokens(data.validation_file, data, setup.model.vocabulary);
  }
  setup.settings.data = std::move(data);
}

void check_batch(const TrainSetup& setup) {
  const config::DataSettings& data = setup.settings.data;
  const std::int64_t samples = data::sample_count(*setup.training_tokens, data.block_size);
  if (samples < setup.settings.train_batch_size) {
    fail(ErrorCode::input, "{}: {} samples of {} tokens do not fill one batch of {}",
         data.train_file, samples, data.block_size, setup.settings.train_batch_size);
  }
}

std::unique_ptr<model::ParameterSource> open_parameters(const TrainSetup& setup) {
  const std::vector<model::ParameterSpec> specs = setup.model.parameters();
  const std::string& directory = setup.settings.model.directory;
  if (!directory.empty()) return open_weights(directory, specs).parameters;
  return std::make_unique<model::RandomSource>(setup.settings.seed, specs);
}

zero::MemoryPlan plan_memory(const TrainSetup& setup) {
  const optim::AdamW optimizer(setup.settings.optimizer);
  const std::span<const std::string_view> states = optimizer.state_names();
  return zero::plan_memory(
      *setup.layout, {.stage = setup.store.stage,
                      .reduce_bucket_numel = setup.store.reduce_bucket_numel,
                      .overlap = setup.store.overlap,
                      .offload = setup.store.offload,
                      .optimizer_states = {states.begin(), states.end()},
                      .activations = engine::Engine::activation_bytes(setup.model, setup.engine)});
}

engine::FrameMode frame_mode(const config::TrainSettings& settings) {
  if (!settings.gradient_checkpointing) return engine::FrameMode::training;
  return settings.cpu_checkpointing ? engine::FrameMode::host_checkpointing
                                    : engine::FrameMode::checkpointing;
}

void plan(TrainSetup& setup, TrainPlace place) {
  const config::TrainSettings& settings = setup.settings;
  setup.engine = {.shape = {settings.micro_batch_size, settings.data.block_size},
                  .mode = frame_mode(settings),
                  .gradient_clipping = settings.gradient_clipping,
                  .seed = settings.seed};
  setup.layout = std::make_unique<zero::FlatLayout>(
      setup.model,
      zero::FlatLayout::Options{place.world_size, settings.zero.persistence_threshold_numel,
                                settings.zero.persistence_total_numel});
  const zero::Offload offload = offload_of(settings.zero);
  setup.store = {
      .stage = settings.zero.stage,
      .reduce_bucket_numel = settings.zero.reduce_bucket_numel,
      .overlap = {.enabled = settings.zero.overlap &&
                             (place.world_size > 1 || offload.parameters != MemoryTier::device),
                  .prefetch_numel = settings.zero.prefetch_numel,
                  .live_numel = settings.zero.live_numel,
                  .reuse_numel = settings.zero.reuse_numel},
      .offload = offload};
  setup.plan = plan_memory(setup);
  if (setup.plan.total(MemoryTier::pinned) > LockedMemory::allowed()) {
    setup.store.offload = unpin(setup.store.offload, settings.zero, setup.settings.warnings);
    setup.plan = plan_memory(setup);
  }
  const std::string raise = describe_raise(settings.zero.offload_param, *setup.layout);
  if (!raise.empty()) setup.settings.warnings.push_back(raise);
  setup.formula = zero::formula_bytes(
      {setup.layout->numel(), setup.model.dtype, settings.zero.stage, place.world_size});
  if (place.device_memory > 0 && setup.plan.total() > place.device_memory) {
    fail(
        ErrorCode::out_of_memory,
        "the run needs {} of device memory per rank and --device_memory allows {} ({}); use a "
        "higher ZeRO stage, more ranks, offload, a smaller micro batch or --gradient_checkpointing",
        format_bytes(setup.plan.total()), format_bytes(place.device_memory),
        zero::describe(setup.plan, setup.formula));
  }
}

}  // namespace

TrainSetup set_up_training(std::span<const std::string> arguments, TrainPlace place) {
  const config::TrainOptions options = config::parse_train_options(arguments);
  TrainSetup setup;
  // Once without anything known, to learn which model and data are meant; then with both.
  setup.settings = config::resolve(options, {});
  setup.model = model::make_gpt2(model_config(setup.settings.model), setup.settings.dtype);
  open_data(setup, setup.settings.data);
  const config::DataSettings data = setup.settings.data;
  setup.settings = config::resolve(
      options, {.world_size = place.world_size,
                .hidden = setup.model.hidden,
                .train_samples = data::sample_count(*setup.training_tokens, data.block_size)});
  setup.settings.data = data;
  check_batch(setup);
  setup.state = engine::describe_run(setup.settings, setup.model, place.world_size,
                                     data::sample_count(*setup.training_tokens, data.block_size));
  if (setup.settings.checkpoint.resume_from.empty()) {
    setup.initial_parameters = open_parameters(setup);
  }
  plan(setup, place);
  return setup;
}

}  // namespace dstrain::cmd
