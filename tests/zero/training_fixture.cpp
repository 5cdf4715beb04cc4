#include "tests/zero/training_fixture.h"

#include <array>

#include "offload/make_file_io.h"
#include "runtime/comm/control/shared_control_group.h"
#include "runtime/comm/staged_communicator.h"
#include "runtime/comm/thread/thread_communicator.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/model/gpt2.h"
#include "runtime/model/random_source.h"
#include "runtime/numeric/philox.h"
#include "runtime/ops/convert.h"
#include "runtime/optim/parameter_groups.h"
#include "tests/support/catch.h"
#include "tests/support/collective_watch.h"
#include "tests/support/deferred_device.h"
#include "tests/support/deferred_ops.h"
#include "tests/support/device_communicator.h"
#include "tests/support/ranks.h"
#include "tests/support/tensor_compare.h"
#include "tests/zero/device_memory.h"
#include "tests/zero/staged_source.h"
#include "zero/memory_plan.h"

namespace dstrain::test {
namespace {

constexpr std::int64_t block_size = 10;

model::Gpt2Config toy_config(float dropout, std::int64_t layers) {
  model::Gpt2Config config;
  config.vocab_size = 37;  // odd sizes, so that shards are uneven
  config.n_positions = block_size;
  config.n_embd = 20;
  config.n_layer = layers;
  config.n_head = 2;
  config.n_inner = 52;
  config.initializer_range = 0.3F;
  config.embd_pdrop = config.attn_pdrop = config.resid_pdrop = dropout;
  return config;
}

/// The tokens of the global batch of a step, by place; labels are one further on.
std::vector<std::int32_t> sample(int step, std::int64_t place) {
  std::vector<std::int32_t> tokens(block_size + 1);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto index = static_cast<std::uint64_t>(place * 100) + i;
    tokens[i] = static_cast<std::int32_t>(
        uniform_below({.seed = 3, .stream = static_cast<std::uint32_t>(step), .index = index}, 37));
  }
  return tokens;
}

/// Where a rank computes, on the CPU as it is or on a deferred device: streams, memory and a
/// communicator for that. On the CPU this refuses all other memory; elsewhere collectives are
/// staged.
class Workplace {
 public:
  Workplace(const TrainingCase& settings, std::unique_ptr<comm::Communicator> communicator) {
    if (settings.deferred) {
      install_deferred_ops();
      device_.emplace(*settings.deferred + static_cast<std::uint64_t>(communicator->rank()));
      memory_.emplace(device_->memory());
      communicator_ = std::make_unique<comm::StagedCommunicator>(
          std::move(communicator), comm::StagedCommunicator::Staging{staging_, 3000});
    } else {
      memory_.emplace();
      inner_ = std::move(communicator);
      communicator_ = std::make_unique<DeviceCommunicator>(*inner_, tensor_memory(settings));
    }
    if (settings.watch) {
      watch_.emplace(*communicator_, [watch = settings.watch, rank = communicator_->rank()](
                                         const std::string& operation) { watch(rank, operation); });
    }
    compute_ = make_stream("compute", CpuStream::Mode::inline_on_caller);
    communication_ = make_stream("communication", CpuStream::Mode::worker_thread);
    copies_ = make_stream("copies", CpuStream::Mode::worker_thread);
    transfers_ = make_stream("transfers", CpuStream::Mode::worker_thread);
  }
  DeviceMemory& memory() { return *memory_; }
  /// Null on the CPU.
  DeferredDevice* device() { return device_ ? &*device_ : nullptr; }
  comm::Communicator& communicator() { return *communicator_; }
  [[nodiscard]] Streams streams(bool overlap) const {
    const StreamView compute = *compute_;
    return {compute, overlap ? StreamView(*communication_) : compute, *copies_, *transfers_};
  }

 private:
  /// What is offloaded is gathered from where it lies, on CPUs.
  std::vector<const RecordingMemory*> tensor_memory(const TrainingCase& settings) {
    if (settings.offload.parameters == MemoryTier::device &&
        settings.offload.optimizer == MemoryTier::device) {
      return {&memory_->recorded};
    }
    return {&memory_->recorded, &memory_->host};
  }
  /// `mode`: on the CPU.
  std::unique_ptr<Stream> make_stream(const char* name, CpuStream::Mode mode) {
    if (device_) return device_->make_stream(name);
    return std::make_unique<CpuStream>(mode);
  }

  HostMemory staging_;
  std::optional<DeferredDevice> device_;
  std::optional<DeviceMemory> memory_;
  std::unique_ptr<comm::Communicator> inner_;
  std::unique_ptr<comm::Communicator> communicator_;
  std::optional<CollectiveWatch> watch_;
  std::unique_ptr<Stream> compute_;
  std::unique_ptr<Stream> communication_;
  std::unique_ptr<Stream> copies_;
  std::unique_ptr<Stream> transfers_;
};

model::Model make_model(const TrainingCase& settings, DeviceKind device) {
  const model::UnitOptions options{settings.dtype, settings.in_splits, device};
  if (settings.model) return settings.model(options);
  return model::make_gpt2(toy_config(settings.dropout, settings.layers), options);
}

optim::ParameterGroups make_groups(const TrainingCase& settings, const model::Model& model) {
  if (!settings.groups) {
    return optim::ParameterGroups(rules::Adam::Settings{.weight_decay = 0.1});
  }
  std::vector<std::string> names;
  for (const model::ParameterSpec& spec : model.parameters()) names.push_back(spec.name);
  return settings.groups(names);
}

/// One rank of the run.
class Rank {
 public:
  Rank(const TrainingCase& settings, Workplace& place, comm::ControlGroup& control)
      : settings_(settings),
        control_(control),
        device_(place.device()),
        memory_(place.memory()),
        communicator_(place.communicator()),
        model_(make_model(settings, memory_.device.device().kind)),
        groups_(make_groups(settings, model_)),
        layout_(model_,
                {.world = settings.world,
                 .persistence_threshold_numel = settings.persistence_threshold,
                 .groups = &groups_}),
        micro_batch_(settings.global_batch / settings.world / settings.accumulation),
        options_{.shape = {micro_batch_, block_size},
                 .mode = settings.mode,
                 .micro_steps = settings.accumulation,
                 .ranks = settings.world,
                 .gradient_clipping = settings.clipping,
                 .seed = 5,
                 .parameter_groups = groups_.count()},
        streams_(place.streams(settings.overlap.enabled)),
        stream_(streams_.compute),
        disk_{*io_, settings.nvme_path, memory_.host_buffers, memory_.disk_ledger},
        store_({layout_, communicator_, memory_.of_store(&disk_), &groups_},
               {settings.stage, settings.reduce_bucket_numel, settings.overlap, settings.offload,
                settings.precision},
               streams_),
        engine_(
            {model_, store_, memory_.activations, memory_.host_activations}, options_, streams_) {
    store_.load({model::RandomSource(1, model_.parameters())}, stream_);
  }

  TrainingResult run() {
    TrainingResult result;
    if (settings_.evaluates) result.held_out_losses.push_back(held_out_loss());
    if (device_ != nullptr) {
      const bool drops = communicator_.rank() == 0;
      device_->note_waits(drops ? settings_.dropped_wait : DeferredDevice::Wait{},
                          settings_.late_ms);
    }
    for (int step = 1; step <= settings_.steps; ++step) {
      if (step == settings_.missing_step) continue;
      launch_step(step, result);
      if (settings_.reloads && step == 1) reload();
    }
    settle(settings_.steps, result);
    if (device_ != nullptr) result.waits = device_->end_note();
    if (settings_.evaluates) result.held_out_losses.push_back(held_out_loss());
    collect_weights(result);
    const zero::MemoryPlan plan = zero::plan_memory(
        layout_, {.stage = settings_.stage,
                  .reduce_bucket_numel = settings_.reduce_bucket_numel,
                  .overlap = settings_.overlap,
                  .offload = settings_.offload,
                  .precision = settings_.precision,
                  .device = stream_.device().kind,
                  .optimizer_sums = groups_.sums(),
                  .activations = engine::Engine::activation_bytes(model_, options_)});
    for (std::size_t i = 0; i < memory_category_names.size(); ++i) {
      result.peak.push_back(memory_.ledger.peak(static_cast<MemoryCategory>(i)));
      result.planned.push_back(plan.of(static_cast<MemoryCategory>(i)));
    }
    result.disk_peak = memory_.disk_ledger.peak();
    result.disk_planned =
        plan.total(MemoryTier::nvme) - plan.of(MemoryTier::nvme, MemoryCategory::buffers);
    result.host_peak = memory_.host_ledger.peak();
    result.host_planned = plan.total(MemoryTier::host) + plan.total(MemoryTier::pinned) -
                          (settings_.offload.optimizer == MemoryTier::nvme ? 0 : plan.save_copy);
    result.host_activations = memory_.host_ledger.peak(MemoryCategory::activations);
    return result;
  }

 private:
  void reload() {
    const std::vector<engine::ParameterSlice> slices = store_.saved_slices(communicator_.rank());
    HostMemory memory;
    CpuStream inline_stream(CpuStream::Mode::inline_on_caller);
    engine::StagedShard staged(store_.saved_states(), slices);
    staged.reserve(memory, inline_stream);
    if (const auto bad = staged.copy(store_)) FAIL("not finite: " << *bad);
    const model::RandomSource other(9, model_.parameters());
    const std::array<const model::ParameterSource*, 2> others{&other, &other};
    store_.load({other, others}, stream_);
    const StagedSource parameters(staged, slices, "fp32");
    const StagedSource first(staged, slices, "exp_avg");
    const StagedSource second(staged, slices, "exp_avg_sq");
    const std::array<const model::ParameterSource*, 2> states{&first, &second};
    store_.load({parameters, states}, stream_);
  }

  /// Asks what was decided on the step before only then, as the trainer does.
  void launch_step(int step, TrainingResult& result) {
    const auto rows = static_cast<std::size_t>(micro_batch_ * block_size);
    const auto micro_steps = static_cast<std::size_t>(settings_.accumulation);
    std::vector<std::int32_t> tokens;
    std::vector<std::int32_t> labels;
    std::vector<std::int64_t> first(micro_steps);
    for (std::size_t a = 0; a < micro_steps; ++a) {
      first[a] =
          (static_cast<std::int64_t>(a) * settings_.world + communicator_.rank()) * micro_batch_;
      for (std::int64_t i = 0; i < micro_batch_; ++i) {
        const std::vector<std::int32_t> drawn = sample(step, first[a] + i);
        tokens.insert(tokens.end(), drawn.begin(), drawn.end() - 1);
        labels.insert(labels.end(), drawn.begin() + 1, drawn.end());
      }
    }
    std::vector<engine::MicroBatch> batches;
    for (std::size_t a = 0; a < micro_steps; ++a) {
      batches.push_back({std::span(tokens).subspan(a * rows, rows),
                         std::span(labels).subspan(a * rows, rows), first[a]});
    }
    constexpr double too_much = 0x1p100;
    engine::StepInput input{
        .step = step,
        .update = {.number = update_of(step), .learning_rate = settings_.learning_rate},
        .micro_batches = batches,
        .loss_scale = step == settings_.overflowing_step ? too_much : settings_.loss_scale};
    for (const std::int64_t counted : control_.gather(engine::counted_labels(batches))) {
      input.labels += counted;
    }
    engine_.accumulate(input);
    settle(step - 1, result);
    engine_.update();
  }

  /// The number of its update.
  [[nodiscard]] std::int64_t update_of(int step) const {
    const int left_out = std::max(settings_.overflowing_step, settings_.missing_step);
    return left_out > 0 && step > left_out ? step - 1 : step;
  }

  void settle(int step, TrainingResult& result) {
    if (step == 0 || step == settings_.missing_step) return;
    const ops::StepDecision decision = engine_.decision(step);
    result.taken.push_back(decision.is_taken());
    if (step == settings_.steps && !decision.is_taken()) {
      result.not_finite = engine_.last_not_finite();
    }
    result.losses.push_back(decision.loss);
    result.norms.push_back(decision.gradient_norm);
  }

  /// Of one micro-batch on this rank.
  double held_out_loss() {
    const auto rows = static_cast<std::size_t>(micro_batch_ * block_size);
    const std::vector<std::int32_t> tokens(rows, 7);
    return engine_.evaluate({tokens, tokens, 0});
  }

  void collect_weights(TrainingResult& result) {
    const auto parts = model_.parts();
    for (const model::PartId id : parts.ids()) {
      const model::Part& part = parts[id];
      const model::UnitSpec& unit = model_.units[static_cast<std::size_t>(part.unit)]->spec();
      const auto views = store_.acquire(id, stream_);
      const std::size_t owned = part.is_tile() ? 1 : unit.parameters.size();
      for (std::size_t i = 0; i < owned; ++i) {
        if (views[i].empty()) continue;
        const std::size_t index =
            part.is_tile() ? unit.tiles[static_cast<std::size_t>(part.tile)].parameter : i;
        append_values(views[i], result.weights);
        append_values(views[i], result.parameters[unit.parameters[index].name]);
      }
      store_.release(id, stream_);
    }
  }

  /// As f32, from wherever they lie.
  void append_values(const TensorView& values, std::vector<float>& all) {
    std::vector<float> own(static_cast<std::size_t>(values.numel()));
    const Buffer exact(values.numel() * size_of(DType::f32), memory_.device, stream_);
    const TensorView widened = exact.block().cut(0, DType::f32, {values.numel()});
    ops::convert(values.reshaped(widened.shape()), widened, stream_);
    ops::convert(widened, HostView(own, widened.shape()), stream_);
    stream_.synchronize();
    all.insert(all.end(), own.begin(), own.end());
  }

  TrainingCase settings_;
  comm::ControlGroup& control_;
  DeferredDevice* device_;
  DeviceMemory& memory_;
  comm::Communicator& communicator_;
  model::Model model_;
  optim::ParameterGroups groups_;
  zero::FlatLayout layout_;
  std::int64_t micro_batch_;
  engine::Engine::Options options_;
  Streams streams_;
  StreamView stream_;  ///< the computing one
  std::unique_ptr<offload::AsyncFileIo> io_ = offload::make_file_io({}, IoKind::automatic).io;
  zero::SwapFolder disk_;
  zero::ShardedStore store_;
  engine::Engine engine_;
};

}  // namespace

TrainingResult run_training(const TrainingCase& settings) {
  std::vector<std::unique_ptr<Workplace>> places;
  for (auto& communicator : comm::make_thread_group(settings.world)) {
    places.push_back(std::make_unique<Workplace>(settings, std::move(communicator)));
  }
  auto control = comm::make_thread_control_groups(settings.world);
  std::vector<TrainingResult> results(places.size());
  run_ranks(
      settings.world,
      [&](int rank) {
        Rank runner(settings, *places[static_cast<std::size_t>(rank)],
                    *control[static_cast<std::size_t>(rank)]);
        results[static_cast<std::size_t>(rank)] = runner.run();
      },
      [&] {
        places.front()->communicator().abort();
        control.front()->abort();
      });
  for (const TrainingResult& own : results) {
    results.front().ranks_agree &= own.weights == results.front().weights;
  }
  return std::move(results.front());
}

void check_planned(const TrainingResult& result) {
  CHECK(result.peak == result.planned);
  CHECK(result.host_peak == result.host_planned);
  CHECK(result.disk_peak == result.disk_planned);
}

void check_same_bits(const TrainingResult& a, const TrainingResult& b) {
  CHECK(a.losses == b.losses);
  CHECK(a.norms == b.norms);
  CHECK(a.held_out_losses == b.held_out_losses);
  CHECK((a.weights == b.weights));
}

}  // namespace dstrain::test
