#include "runtime/session/training_session.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/units.h"
#include "runtime/checkpoint/catalog.h"
#include "runtime/engine/checkpointer.h"
#include "runtime/engine/evaluation.h"
#include "runtime/engine/micro_batch.h"
#include "runtime/engine/model_saver.h"
#include "runtime/engine/resume.h"
#include "runtime/ops/convert.h"
#include "runtime/os/shared_place.h"
#include "runtime/session/checkpoint_setup.h"
#include "runtime/session/model_loading.h"
#include "runtime/session/offload_disks.h"

namespace dstrain::session {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t default_length = 1024;

/// The options of `train` for which the configuration has no key.
config::TrainOptions options_of(const InitializeOptions& options) {
  config::TrainOptions flags;
  flags.seed.value = static_cast<std::int64_t>(options.seed);
  flags.gradient_checkpointing.value = options.gradient_checkpointing;
  flags.lr_scheduler_type.value = "constant";
  return flags;
}

std::int64_t settle_length(const char* name, std::int64_t wanted, std::int64_t most) {
  if (wanted < 0 || wanted > most) {
    fail(ErrorCode::config, "{} {}: the model's positions allow 1 to {}", name, wanted, most);
  }
  return wanted > 0 ? wanted : std::min(default_length, most);
}

config::DataSettings lengths_of(const InitializeOptions& options, const model::Model& model) {
  config::DataSettings data;
  data.block_size = settle_length("length", options.length, model.positions);
  if (!model.pairs && options.source_length != 0) {
    fail(ErrorCode::config, "source_length {}: the model has no encoder", options.source_length);
  }
  if (model.pairs) {
    data.source_length = settle_length("source_length", options.source_length, model.positions);
  }
  return data;
}

Remedies general_remedies() {
  const auto say = [](auto... /*how much*/) {
    return "a higher ZeRO stage, offload_optimizer, offload_param, gradient_checkpointing, a "
           "smaller micro batch or a shorter length takes less";
  };
  return {.device = say, .machine = say};
}

void refuse(const std::vector<std::string>& problems) {
  if (!problems.empty()) fail(ErrorCode::config, "{}", fmt::join(problems, "\n"));
}

BatchRows::Limits limits_of(const RunSetup& setup) {
  const config::TrainSettings& settings = setup.settings;
  const model::LossSpec loss = setup.model.loss();
  return {.sizes = {.tokens = settings.data.block_size,
                    .source = settings.data.source_length,
                    .features = setup.model.features(),
                    .targets = loss.targets},
          .sequences = settings.accumulation_steps * settings.micro_batch_size,
          .vocabulary = setup.model.vocabulary,
          .classes = loss.classes};
}

/// On every rank, for all to learn of it; that of rank 0 is kept.
void check_client_state(const std::string& text, comm::ControlGroup& control) {
  const bool fits = nlohmann::json::accept(text) && nlohmann::json::parse(text).is_object();
  if (!control.any(!fits)) return;
  fail(ErrorCode::usage, "save_checkpoint: client_state is no JSON object");
}

/// Makes the directory on the ranks that lead a machine's files. Throws on every rank.
void make_directory(const fs::path& directory, comm::ControlGroup& control) {
  if (control.any(directory.empty())) fail(ErrorCode::usage, "the directory to write to is empty");
  const std::error_code error =
      control.rank() == 0 ? make_directories(directory.string()) : std::error_code();
  const std::string failure = control.broadcast(
      error ? fmt::format("{}: cannot be made: {}", directory.string(), error.message()) : "", 0);
  if (!failure.empty()) fail(ErrorCode::io, "{}", failure);
}

}  // namespace

RunSetup TrainingSession::set_up(const Inputs& inputs) {
  const WorkerEnv& worker = inputs.rank.worker();
  if (inputs.options.trains && !inputs.config.has("optimizer.type")) {
    fail(ErrorCode::config,
         "{}: has no section optimizer: add one, or make the engine with trains = false",
         inputs.config.file());
  }
  const config::TrainOptions flags = options_of(inputs.options);
  config::Resolved resolved = config::resolve_config(
      flags, inputs.config, {.world_size = worker.world_size, .train_samples = -1});
  RunSetup setup;
  setup.settings = std::move(resolved.settings);
  setup.settings.model = inputs.model;
  setup.settings.trains = inputs.options.trains;
  const DeviceKind device = inputs.rank.backend().device().kind;
  setup.model = inputs.make_model({setup.settings.dtype, setup.settings.model.in_splits, device});
  if (!inputs.model.directory.empty()) {
    setup.model.companions = stored_companions(inputs.model.directory);
  }
  setup.settings.data = lengths_of(inputs.options, setup.model);
  refuse(unusable_disks(setup.settings.zero));
  setup.memory = set_up_memory(setup.settings, setup.model, worker.world_size);
  setup.state = engine::describe_run(setup.settings, setup.model, worker.world_size, {});
  setup.initial_parameters = open_parameters(inputs.model, setup.model, setup.settings.seed);
  setup.alike = describe_alike(resolved.effective, setup.model);
  setup.alike.push_back(fmt::format(
      "length {}, source_length {}, seed {}, gradient_checkpointing {}, trains {}",
      setup.settings.data.block_size, setup.settings.data.source_length, inputs.options.seed,
      inputs.options.gradient_checkpointing, inputs.options.trains));
  for (const model::ParameterSpec& parameter : setup.model.parameters()) {
    setup.alike.push_back(
        fmt::format("a parameter {} of the shape {}", parameter.name, to_string(parameter.shape)));
  }
  setup.alike.push_back(
      fmt::format("losses with the factors {}", fmt::join(setup.model.loss().factors, ", ")));
  if (worker.world_size > 1 && !inputs.model.directory.empty()) {
    setup.alike.push_back("weights with the digest " +
                          weights_digest(*setup.initial_parameters, setup.model));
  }
  const Remedies remedies = general_remedies();
  const Bytes budget = worker.device_memory_bytes;
  if (budget > 0) {
    check_budget(setup.memory, std::max<Bytes>(budget - inputs.device_bytes_of_others, 1),
                 remedies);
  }
  if (worker.local_rank == 0) {
    check_machine(setup.memory, worker.local_world_size, worker.host_memory_bytes, remedies);
    refuse(full_disks(setup.settings.zero, setup.memory.plan, worker.local_world_size));
  }
  return setup;
}

TrainingSession::TrainingSession(const Inputs& inputs)
    : rank_(inputs.rank),
      number_(inputs.number),
      setup_(set_up(inputs)),
      outputs_(setup_.model.loss().outputs),
      session_(session_inputs(setup_, rank_, general_remedies(), inputs.device_bytes_of_others)),
      control_(session_.control_group()),
      compute_(session_.streams().compute),
      rows_(limits_of(setup_)) {
  if (leads()) {
    for (const std::string& warning : setup_.settings.warnings) log_warning(warning);
  }
  const InPhase loading(&rank_.progress(), RunPhase::loading);
  session_.store().load({*setup_.initial_parameters}, compute_);
  if (setup_.settings.trains) counts_.emplace(setup_.settings, setup_.state);
}

std::vector<Share> TrainingSession::meet(const Share& own) {
  refuse_broken();
  // So that operations have the same numbers on all ranks: a step by hand may still communicate.
  session_.streams().communication.synchronize();
  return session::meet(control_, own);
}

/// Every rank learns of all batches before one of them computes.
TrainingSession::Total TrainingSession::agree(Call call,
                                              const Batch& batch,
                                              const std::string& problem,
                                              std::int64_t told) {
  const std::int64_t each = setup_.settings.micro_batch_size;
  const Share own{.call = call,
                  .engine = number_,
                  .told = told,
                  .labels = problem.empty() ? rows_.counted(batch) : 0,
                  .positions = problem.empty() ? batch.sequences * batch.length : 0,
                  .batches = (batch.sequences + each - 1) / each,
                  .refused = problem.empty() ? 0 : 1};
  Total total;
  const std::vector<Share> all = meet(own);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const Share& other = all[rank];
    if (other.told != all.front().told) {
      fail(ErrorCode::usage,
           "forward_backward: rank 0 was told {} labels and rank {} {}: give the number of all "
           "ranks together",
           all.front().told, rank, other.told);
    }
  }
  if (!problem.empty()) fail(ErrorCode::input, "batch: {}", problem);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].refused != 0)
      fail(ErrorCode::input, "batch: rank {} has one that is refused", rank);
    total.labels += all[rank].labels;
    total.positions += all[rank].positions;
    total.batches = std::max(total.batches, all[rank].batches);
  }
  return total;
}

void TrainingSession::require_training() const {
  if (counts_) return;
  fail(ErrorCode::usage,
       "this engine was made with trains = false: it evaluates, and has no steps, no checkpoints "
       "and no parameters to change");
}

void TrainingSession::refuse_broken() const {
  if (!computing_) return;
  fail(ErrorCode::usage,
       "an exception has left this engine in the middle of a computation: make another one");
}

void TrainingSession::refuse_open_step(const char* attempted) const {
  refuse_broken();
  if (!open_) return;
  fail(ErrorCode::usage, "{}: a step is open after {} of {} forward_backward(): call step() first",
       attempted, open_->micro_batches, setup_.settings.accumulation_steps);
}

std::int64_t TrainingSession::first_sample(std::int64_t micro_batch) const {
  const WorkerEnv& worker = rank_.worker();
  return (micro_batch * worker.world_size + worker.rank) * setup_.settings.micro_batch_size;
}

StepResult TrainingSession::train_batch(const Batch& batch) {
  require_training();
  refuse_open_step("train_batch");
  const std::int64_t each = setup_.settings.micro_batch_size;
  const std::int64_t most = each * setup_.settings.accumulation_steps;
  std::string problem = rows_.problem(batch, true);
  if (problem.empty() && batch.sequences > most) {
    problem = fmt::format("{} sequences, of which this rank takes up to {} in a step",
                          batch.sequences, most);
  }
  const InPhase training(&rank_.progress(), RunPhase::training);
  const std::int64_t step = setup_.state.global_step + 1;
  begin_step(step);
  const Total total = agree(Call::train_batch, batch, problem);
  if (total.labels == 0) {
    fail(ErrorCode::input, "step {}: the batch has no label that counts", step);
  }
  rows_.take(batch, 0, total.batches * each);
  std::vector<engine::MicroBatch> micro_batches;
  for (std::int64_t i = 0; i < total.batches; ++i) {
    micro_batches.push_back(engine::micro_batch(rows_.rows(i * each, each), first_sample(i)));
  }
  engine::StepInput input = counts_->input(step);
  input.micro_batches = micro_batches;
  input.labels = total.labels;
  return settle(input, total, [&](engine::Engine& engine) { engine.accumulate(input); });
}

StepResult TrainingSession::settle(const engine::StepInput& input,
                                   const Total& total,
                                   Action first_half) {
  ops::StepDecision decision;
  compute([&](engine::Engine& engine) {
    first_half(engine);
    engine.update();
    decision = engine.decision(input.step);
  });
  counts_->settle(input.step, decision);
  if (!decision.is_taken()) {
    const std::string parameter = engine::find_overflow(session_.engine(), setup_.model, control_);
    if (leads()) {
      log_warning(counts_->overflow().describe_skip(input.step, decision, parameter));
    }
  }
  setup_.state.global_step = input.step;
  setup_.state.consumed_samples += setup_.settings.train_batch_size;
  counts_->write(setup_.state);
  tell_progress(input.step, decision.loss, total.positions);
  return {.step = input.step,
          .loss = decision.loss,
          .gradient_norm = decision.gradient_norm,
          .learning_rate = input.update.learning_rate,
          .loss_scale = input.loss_scale,
          .labels = total.labels,
          .taken = decision.is_taken()};
}

void TrainingSession::begin_step(std::int64_t step) {
  rank_.progress().begin_step(step);
  begun_at_seconds_ = rank_.clock().now_seconds();
}

void TrainingSession::tell_progress(std::int64_t step, double loss, std::int64_t positions) {
  const double now = rank_.clock().now_seconds();
  const double before = settled_at_seconds_ > 0 ? settled_at_seconds_ : begun_at_seconds_;
  settled_at_seconds_ = now;
  tell_save();
  rank_.control().tell(
      {.step = step,
       .steps = 0,
       .loss = loss,
       .tokens_per_second = static_cast<double>(positions) / step_rate_.add(now - before),
       .saved_step = saved_step_});
}

void TrainingSession::tell_save() {
  if (untold_save_ && rank_.control().tell(*untold_save_)) untold_save_.reset();
}

double TrainingSession::forward_backward(const Batch& micro_batch, std::int64_t labels) {
  require_training();
  const std::int64_t each = setup_.settings.micro_batch_size;
  const std::int64_t steps = setup_.settings.accumulation_steps;
  if (open_ && open_->micro_batches == steps) {
    fail(ErrorCode::usage,
         "forward_backward: all {} of gradient_accumulation_steps are done: call step()", steps);
  }
  std::string problem = rows_.problem(micro_batch, true);
  if (problem.empty() && micro_batch.sequences > each) {
    problem = fmt::format("{} sequences, of which a micro batch takes up to {}",
                          micro_batch.sequences, each);
  }
  const InPhase training(&rank_.progress(), RunPhase::training);
  if (labels < 0) problem = fmt::format("{} labels were told", labels);
  const Total total = agree(Call::forward_backward, micro_batch, problem, labels);
  if (!open_) {
    open_ = OpenStep{.input = counts_->input(setup_.state.global_step + 1)};
    open_->input.labels = labels > 0 ? labels : std::max<std::int64_t>(total.labels, 1) * steps;
    begin_step(open_->input.step);
  }
  const std::int64_t index = open_->micro_batches;
  const std::int64_t counted = open_->total.labels + total.labels;
  // The last micro-batch is where the optimizer may begin to update.
  if (index + 1 == steps && counted != open_->input.labels &&
      zero::updates_early(setup_.memory.store.offload)) {
    const std::int64_t promised = open_->input.labels;
    if (index == 0) open_.reset();
    fail(ErrorCode::usage,
         "forward_backward: {} labels count in this step, not the {} that the first was told or "
         "had: where the optimizer updates early (offload_optimizer on a disk, without "
         "gradient_clipping) tell the first of a step how many count in all",
         counted, promised);
  }
  const engine::MicroBatch filled =
      engine::micro_batch(rows_.take(micro_batch, 0, each), first_sample(index));
  double loss = 0;
  compute([&](engine::Engine& engine) {
    if (index == 0) engine.begin_step(open_->input, steps);
    loss = engine.run_micro_batch(filled, index);
  });
  open_->total.labels = counted;
  open_->total.positions += total.positions;
  ++open_->micro_batches;
  const std::int64_t own = engine::counted_labels({&filled, 1});
  return own > 0 ? loss / static_cast<double>(own) : 0;
}

StepResult TrainingSession::step() {
  require_training();
  const std::int64_t steps = setup_.settings.accumulation_steps;
  const std::int64_t done = open_ ? open_->micro_batches : 0;
  if (done != steps) {
    fail(ErrorCode::usage,
         "step: {} of {} forward_backward() are done (gradient_accumulation_steps)", done, steps);
  }
  meet(Call::step);
  const InPhase training(&rank_.progress(), RunPhase::training);
  const OpenStep open = *std::exchange(open_, std::nullopt);
  if (open.total.labels == 0) {
    fail(ErrorCode::input, "step {}: no label of its batches counts", open.input.step);
  }
  return settle(open.input, open.total,
                [&](engine::Engine& engine) { engine.end_step(open.total.labels); });
}

double TrainingSession::evaluate(const Batch& batch) {
  refuse_open_step("evaluate");
  const std::int64_t each = setup_.settings.evaluation.batch_size;
  const std::string problem = rows_.problem(batch, true);
  const InPhase evaluating(&rank_.progress(), RunPhase::evaluating);
  const Total total = agree(Call::evaluate, batch, problem);
  if (total.labels == 0) fail(ErrorCode::input, "evaluate: no label counts");
  engine::Losses own;
  for (std::int64_t i = 0; i < total.batches; ++i) {
    const data::SampleRows rows = rows_.take(batch, std::min(i * each, batch.sequences), each);
    compute([&](engine::Engine& engine) {
      engine::add_losses(engine, engine::micro_batch(rows, 0), own);
    });
  }
  return engine::mean_loss(own, control_);
}

std::vector<float> TrainingSession::logits(const Batch& batch) {
  refuse_open_step("logits");
  const std::int64_t each = setup_.settings.evaluation.batch_size;
  const std::int64_t block = setup_.settings.data.block_size;
  const std::string problem = rows_.problem(batch, false);
  const InPhase evaluating(&rank_.progress(), RunPhase::evaluating);
  const Total total = agree(Call::logits, batch, problem);
  std::vector<float> all;
  all.reserve(static_cast<std::size_t>(batch.sequences * batch.length * outputs_));
  const Buffer device(each * block * outputs_ * size_of(DType::f32),
                      session_.memory().device.activations, compute_);
  const TensorView values = device.block().reused(DType::f32, {each * block, outputs_});
  std::vector<float> host(static_cast<std::size_t>(values.numel()));
  for (std::int64_t i = 0; i < total.batches; ++i) {
    const std::int64_t first = std::min(i * each, batch.sequences);
    engine::MicroBatch filled = engine::micro_batch(rows_.take(batch, first, each), 0);
    filled.labels = {};
    compute([&](engine::Engine& engine) { engine.logits(filled, values); });
    ops::convert(values, HostView(host, values.shape()), compute_);
    compute_.synchronize();
    const auto row = static_cast<std::ptrdiff_t>(outputs_);
    for (std::int64_t s = 0; s < std::min(each, batch.sequences - first); ++s) {
      const auto begin = host.begin() + s * block * row;
      all.insert(all.end(), begin, begin + batch.length * row);
    }
  }
  return all;
}

void TrainingSession::save_checkpoint(const fs::path& directory, const SaveOptions& options) {
  require_training();
  refuse_open_step("save_checkpoint");
  const InPhase saving(&rank_.progress(), RunPhase::saving);
  meet(Call::save_checkpoint);
  check_client_state(options.client_state, control_);
  make_directory(directory, control_);
  const std::uint32_t request = rank_.control().newest_save_request();
  engine::Checkpointer checkpointer(
      checkpointer_inputs(setup_, rank_, session_, [](const std::string&) {}),
      checkpointer_options(setup_, rank_, directory), compute_);
  engine::TrainerState state = setup_.state;
  state.max_steps = state.global_step;
  state.client_state = options.client_state;
  state.tag = options.tag.empty() ? fmt::format("global_step{}", state.global_step) : options.tag;
  checkpointer.begin(state);
  checkpointer.finish();
  const bool saved = checkpointer.saved_step() == state.global_step;
  const fs::path path = checkpointer.path_of(state.global_step);
  untold_save_ = SaveAnswer{.request = request,
                            .step = state.global_step,
                            .checkpoint = saved ? fs::absolute(path).string() : "",
                            .failure = checkpointer.failure()};
  tell_save();
  if (!saved) fail(ErrorCode::io, "{}: {}", path.string(), checkpointer.failure());
  saved_step_ = state.global_step;
}

namespace {

/// The checkpoints of a directory, the newest first; with a tag, those that have it. Of rank 0.
std::vector<std::string> list_names(const fs::path& directory, const std::string& tag) {
  std::error_code ignored;
  std::vector<std::string> names;
  if (!fs::is_directory(directory, ignored)) return names;
  for (const checkpoint::Found& found : checkpoint::list_checkpoints(directory)) {
    try {
      const checkpoint::Checkpoint opened(found.path);
      if (!tag.empty() && engine::read_trainer_state(opened).tag != tag) continue;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::newer_format) throw;
      if (!tag.empty()) continue;  // resume() reports damage
    }
    names.push_back(found.path.filename().string());
  }
  return names;
}

}  // namespace

std::optional<Loaded> TrainingSession::load_checkpoint(const fs::path& directory,
                                                       const std::string& tag) {
  require_training();
  refuse_open_step("load_checkpoint");
  const InPhase loading(&rank_.progress(), RunPhase::loading);
  meet(Call::load_checkpoint);
  std::error_code ignored;
  const bool wrong =
      leads() && fs::exists(directory, ignored) &&
      (!fs::is_directory(directory, ignored) || checkpoint::is_checkpoint(directory));
  if (control_.any(wrong)) {
    fail(ErrorCode::usage,
         "load_checkpoint: {} is not a directory that holds checkpoints: give the one that "
         "save_checkpoint() was given, and a tag to choose among them",
         directory.string());
  }
  engine::ResumePlan plan{.directory = directory,
                          .fall_back = tag.empty(),
                          .other_data = engine::OtherData::taken,
                          .visible_seconds = visible_within(rank_.worker())};
  if (leads()) plan.names = list_names(directory, tag);
  if (control_.broadcast(plan.names.empty() ? "" : "some", 0).empty()) return std::nullopt;
  const engine::Resumed resumed =
      engine::resume(plan, setup_.state, {setup_.model, session_.store(), control_}, compute_);
  engine::go_on_from(resumed.state, setup_.state);
  counts_.emplace(setup_.settings, setup_.state);
  return Loaded{.checkpoint = resumed.checkpoint,
                .step = resumed.state.global_step,
                .tag = resumed.state.tag,
                .client_state = resumed.state.client_state};
}

void TrainingSession::save_pretrained(const fs::path& directory) {
  refuse_open_step("save_pretrained");
  const InPhase exporting(&rank_.progress(), RunPhase::exporting);
  meet(Call::save_pretrained);
  make_directory(directory, control_);
  const std::exception_ptr failure =
      engine::save_model(setup_.model, session_.store(), leads() ? &directory : nullptr, compute_);
  std::string text;
  ErrorCode code{};
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const Error& error) {
    text = error.what();
    code = error.code();
  }
  text = control_.broadcast(text, 0);
  code = control_.gather(code).front();
  if (!text.empty()) fail(code, "{}", text);
}

std::vector<ParameterInfo> TrainingSession::parameters() const {
  std::vector<ParameterInfo> all;
  for (const model::ParameterSpec& parameter : setup_.model.parameters()) {
    std::vector<std::int64_t> shape;
    for (std::size_t i = 0; i < parameter.shape.rank(); ++i) shape.push_back(parameter.shape[i]);
    all.push_back({parameter.name, std::move(shape)});
  }
  return all;
}

WholeParameters TrainingSession::gather(const std::vector<std::string>& names) {
  require_training();
  refuse_open_step("gathered_parameters");
  meet(Call::gathered_parameters);
  std::vector<model::ParameterSpec> wanted = setup_.model.parameters();
  const std::string own = fmt::format("{}", fmt::join(names, ", "));
  const std::vector<std::string> all = control_.gather_texts(own);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == all.front()) continue;
    fail(ErrorCode::usage, "gathered_parameters: rank 0 gathers {}, and rank {} {}", all.front(),
         rank, all[rank]);
  }
  for (const std::string& name : names) {
    if (std::ranges::find(wanted, name, &model::ParameterSpec::name) != wanted.end()) continue;
    fail(ErrorCode::usage,
         "gathered_parameters: the model has no parameter {}; parameters() lists "
         "them",
         name);
  }
  std::erase_if(wanted, [&](const model::ParameterSpec& parameter) {
    return std::ranges::find(names, parameter.name) == names.end();
  });
  return gather_parameters(session_.store(), control_, wanted);
}

void TrainingSession::take_changes(const WholeParameters& before, const WholeParameters& values) {
  refuse_open_step("gathered_parameters");
  meet(Call::release);
  WholeParameters changed;
  for (const auto& [name, old] : before) {
    const std::vector<float>& now = values.find(name)->second;
    const auto bytes = std::as_bytes(std::span(now));
    const bool same = std::ranges::equal(bytes, std::as_bytes(std::span(old)));
    if (control_.broadcast(same ? "" : "changed", 0).empty()) continue;
    const std::string text =
        control_.broadcast({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, 0);
    std::vector<float>& taken = changed[name];
    taken.resize(now.size());
    std::memcpy(taken.data(), text.data(), text.size());
  }
  if (!changed.empty()) {
    replace_parameters(session_.store(), changed, rank_.worker().rank, compute_);
  }
}

double TrainingSession::learning_rate() const {
  return counts_ ? counts_->input(setup_.state.global_step + 1).update.learning_rate : 0;
}

}  // namespace dstrain::session
