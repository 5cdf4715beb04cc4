#include "runtime/session/memory_setup.h"

#include <algorithm>

#include "runtime/backend/backend.h"
#include "runtime/base/units.h"
#include "runtime/device/locked_memory.h"
#include "runtime/optim/parameter_groups.h"
#include "runtime/session/offload_setup.h"

namespace dstrain::session {
namespace {

/// Whole pages are locked: so much more than the buffers have.
constexpr Bytes begun_pages = 64 * kibibyte;

zero::MemoryPlan plan_memory(const MemorySetup& setup,
                             const config::TrainSettings& settings,
                             const model::Model& model) {
  std::span<const std::string_view> states;
  if (setup.groups) states = setup.groups->state_names();
  zero::MemoryPlan plan = zero::plan_memory(
      *setup.layout,
      {.stage = setup.store.stage,
       .reduce_bucket_numel = setup.store.reduce_bucket_numel,
       .overlap = setup.store.overlap,
       .offload = setup.store.offload,
       .precision = setup.store.precision,
       .device = model.device,
       .optimizer_states = {states.begin(), states.end()},
       .optimizer_sums = setup.groups ? setup.groups->sums() : 0,
       .trains = settings.trains,
       .activations = setup.decoder ? engine::Decoder::bytes(model, *setup.decoder)
                                    : engine::Engine::activation_bytes(model, setup.engine)});
  if (!shares_host_memory(model.device)) {
    plan.add(setup.store.offload.staging, MemoryCategory::buffers, Backend::staging_bytes);
  }
  return plan;
}

zero::ShardedStore::Options store_options(const config::TrainSettings& settings,
                                          int world,
                                          DeviceKind device) {
  const config::ZeroSettings& sharding = settings.zero;
  zero::Offload offload = offload_of(settings);
  if (!settings.trains) {  // there is nothing to update
    offload.optimizer = MemoryTier::device;
    offload.early = zero::EarlyUpdate::off;
  }
  const bool downloads = offload.optimizer != MemoryTier::device && !shares_host_memory(device);
  const bool communicates = world > 1 || downloads || offload.parameters != MemoryTier::device ||
                            zero::updates_early(offload);
  return {.stage = sharding.stage,
          .reduce_bucket_numel = sharding.reduce_bucket_numel,
          .overlap = {.enabled = sharding.overlap && communicates,
                      .prefetch_numel = sharding.prefetch_numel,
                      .live_numel = sharding.live_numel,
                      .reuse_numel = sharding.reuse_numel},
          .offload = offload,
          .precision = settings.precision};
}

std::vector<std::string> biases_and_norms(const model::Model& model) {
  std::vector<std::string> names;
  for (const model::ParameterSpec& parameter : model.parameters()) {
    if (model::is_bias_or_norm(parameter)) names.push_back(parameter.name);
  }
  return names;
}

engine::FrameMode frame_mode(const config::TrainSettings& settings) {
  if (!settings.trains) return engine::FrameMode::inference;
  if (!settings.gradient_checkpointing) return engine::FrameMode::training;
  return settings.cpu_checkpointing ? engine::FrameMode::host_checkpointing
                                    : engine::FrameMode::checkpointing;
}

}  // namespace

MemorySetup set_up_memory(config::TrainSettings& settings,
                          const model::Model& model,
                          int world,
                          const std::optional<engine::Decoder::Options>& decoder) {
  MemorySetup setup;
  setup.decoder = decoder;
  if (settings.trains) {
    setup.groups = std::make_unique<optim::ParameterGroups>(
        optim::make_parameter_groups(settings.optimizer, biases_and_norms(model)));
  }
  setup.engine = {
      .shape = engine::batch_shape(settings.micro_batch_size, settings.data),
      .inference_shape = engine::batch_shape(settings.evaluation.batch_size, settings.data),
      .mode = frame_mode(settings),
      .micro_steps = settings.accumulation_steps,
      .ranks = world,
      .gradient_clipping = settings.gradient_clipping,
      .gradient_factor = settings.sums_gradients ? static_cast<double>(world) : 1.0,
      .seed = settings.seed,
      .parameter_groups = setup.groups ? setup.groups->count() : 1,
      .documents = settings.data.documents};
  setup.layout = std::make_unique<zero::FlatLayout>(
      model, zero::FlatLayout::Options{world, settings.zero.persistence_threshold_numel,
                                       settings.zero.persistence_total_numel, setup.groups.get()});
  setup.store = store_options(settings, world, model.device);
  setup.plan = plan_memory(setup, settings, model);
  const Bytes pinned = setup.plan.total(MemoryTier::pinned);
  // Drivers of other devices lock memory themselves, outside this user's limit.
  const bool limited = shares_host_memory(model.device);
  if (limited && pinned > 0 && pinned + begun_pages > LockedMemory::allowed()) {
    setup.store.offload = unpin(setup.store.offload, settings.zero, settings.warnings);
    setup.plan = plan_memory(setup, settings, model);
  }
  const std::string raise =
      describe_raise(settings.zero.offload_param, setup.store.offload, *setup.layout);
  if (!raise.empty()) settings.warnings.push_back(raise);
  const std::int64_t states = setup.groups ? std::ssize(setup.groups->state_names()) : 0;
  setup.formula = zero::formula_bytes(
      {setup.layout->numel(), model.dtype, settings.zero.stage, world, states, settings.precision});
  return setup;
}

std::optional<AvailableMemory> exceeded_memory(const zero::MemoryPlan& plan,
                                               int ranks,
                                               Bytes budget) {
  const Bytes needs = ranks * plan.machine_total();
  const auto available =
      budget > 0
          ? AvailableMemory{budget, fmt::format("--host_memory allows {}", format_bytes(budget))}
          : available_memory();
  if (!available || needs <= available->bytes) return std::nullopt;
  return AvailableMemory{
      available->bytes,
      fmt::format("{} of this machine would need {} of its memory, and {}", counted(ranks, "rank"),
                  format_bytes(needs), available->reason)};
}

}  // namespace dstrain::session
