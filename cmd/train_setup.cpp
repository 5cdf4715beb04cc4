#include "cmd/train_setup.h"

#include <algorithm>
#include <iterator>
#include <span>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cmd/memory_savings.h"
#include "runtime/backend/open_backend.h"
#include "runtime/config/resolve.h"
#include "runtime/data/hugging_face_encoder.h"
#include "runtime/data/tokenizer.h"
#include "runtime/model/hf_companions.h"
#include "runtime/model/other_formats.h"
#include "runtime/session/memory_fit.h"
#include "runtime/session/model_loading.h"
#include "runtime/session/offload_disks.h"

namespace dstrain::cmd {
namespace {

/// The tokenizer of text: the one that was asked for, else the model's own, else the one whose
/// tokens are trained on, else bytes.
std::string choose_tokenizer(const config::TrainSettings& settings,
                             const model::ModelConfig& model) {
  const config::DataSettings& data = settings.data;
  const std::string& directory = settings.model.directory;
  if (data.tokenizer_given) return data.tokenizer;
  if (!directory.empty() && !model.byte_tokens && data::has_tokenizer(directory)) return directory;
  for (const config::DataFile& file : data.train_files) {
    if (directory.empty() && data::has_tokenizer(file.path)) return file.path;
  }
  return data.tokenizer;
}

/// Where a model has no tokenizer beside it, and so its text would be read as bytes: what messages
/// lack.
std::string no_chat_template(const config::TrainSettings& settings,
                             const model::ModelConfig& model) {
  const config::DataSettings& data = settings.data;
  const std::string& directory = settings.model.directory;
  const bool means_bytes = data.tokenizer != "byte" || data.tokenizer_given || directory.empty() ||
                           model.byte_tokens || model.vocabulary() == data::byte_vocabulary;
  if (means_bytes) return {};
  return fmt::format(
      "the model in {} has no tokenizer beside it, and so no chat template: add --tokenizer DIR "
      "with its tokenizer's files",
      directory);
}

/// Another tokenizer goes out with the model in place of its own: its files, and the ids of the
/// tokens that begin and end texts.
void take_tokenizer(TrainSetup& setup, const std::string& tokenizer) {
  if (!setup.data.text_tokens) return;
  setup.model.config_json =
      model::with_text_tokens(setup.model.config_json, *setup.data.text_tokens);
  std::vector<model::CompanionFile>& own = setup.model.companions;
  std::erase_if(own, model::is_of_tokenizer);
  for (model::CompanionFile& file : own) {
    file.bytes = model::with_text_tokens(file.bytes, *setup.data.text_tokens);
  }
  std::ranges::move(model::read_tokenizer_files(tokenizer), std::back_inserter(own));
}

/// Text that is read as bytes. That is what the user means who types so, or has a vocabulary of
/// bytes; a model that was trained on other tokens would forget all that it knows of them.
void settle_bytes(TrainSetup& setup, model::ModelConfig& model) {
  const auto is_text = [](const auto& source) {
    return source && source->is_text();
  };
  const bool trains_on_text = is_text(setup.data.training_data);
  const bool asks = setup.data.questions != nullptr;
  const bool text = trains_on_text || is_text(setup.data.validation_data) || asks;
  config::TrainSettings& settings = setup.settings;
  if (!text || settings.data.tokenizer != "byte") return;
  if (model.vocabulary() == data::byte_vocabulary) return;
  const std::string& file =
      asks ? setup.data.questions->path()
           : (trains_on_text ? setup.data.training_data : setup.data.validation_data)->path();
  if (!settings.data.tokenizer_given && !model.byte_tokens && !settings.model.directory.empty()) {
    fail(ErrorCode::usage,
         "{}: is text, and the model in {} has a vocabulary of {}, not of 256 bytes, and no "
         "tokenizer beside it: add --tokenizer DIR with its tokenizer's files, give a file of its "
         "own tokens (llm.c's .bin), or add --tokenizer byte to {} as ids 0 to 255",
         file, settings.model.directory, model.vocabulary(),
         settings.trains ? "train it on the bytes of the text" : "read the bytes of the text");
  }
  if (settings.model.directory.empty()) {
    setup.notes.push_back(
        fmt::format("{}: each byte of the text is a token, and the model has a vocabulary of {}; "
                    "vocab_size=256 in --config_overrides makes it smaller and faster",
                    file, model.vocabulary()));
  }
  if (!trains_on_text) return;
  if (std::erase_if(setup.model.companions, model::is_of_tokenizer) > 0) {
    setup.notes.push_back(
        fmt::format("{}: its tokenizer's files do not go out with the model, which learns bytes",
                    settings.model.directory));
  }
  model.byte_tokens = true;
  setup.model.config_json = model.to_json(setup.model.dtype);
}

/// LLaMA-Factory's name for it means records, of each file.
void note_max_samples(TrainSetup& setup, const config::Flag<std::int64_t>& flag) {
  if (flag.typed_as != "--max_samples" || !setup.data.training_data) return;
  const bool packed = setup.data.training_data->packing().value_or(false);
  const bool several = setup.settings.data.train_files.size() > 1;
  if (!packed && !several) return;
  setup.notes.push_back(fmt::format(
      "{} {}: counts samples of {} tokens{}{}", flag.typed_as, flag.value,
      setup.settings.data.block_size,
      packed ? ", into which records are packed, not records; add --packing false to count these"
             : "",
      several ? "; the samples of all files together, not of each" : ""));
}

engine::TrainingData describe_training_data(const TrainSetup& setup) {
  const data::SampleSource& source = *setup.data.training_data;
  const config::DataSettings& data = setup.settings.data;
  return {
      .file = source.name(),
      .bytes = source.bytes(),
      .digest = source.digest(),
      .samples = setup.data.training_samples,
      .mixture = source.mixture(),
      .text_encoder = source.is_text() ? setup.data.text_encoder : "",
      .packing = source.packing(),
      .record_options = source.packing() ? std::optional(setup.data.record_options) : std::nullopt,
      .split = data.split,
      .max_samples = data.max_train_samples};
}

std::vector<std::string> describe_alike(const TrainSetup& setup,
                                        std::vector<std::string> lines,
                                        const std::vector<config::EffectiveValue>& effective) {
  std::ranges::move(session::describe_alike(effective, setup.model), std::back_inserter(lines));
  lines.emplace_back(setup.settings.output.profile.empty() ? "no --profile" : "a --profile");
  const engine::TrainingData& data = setup.state.data;
  lines.push_back(fmt::format("training data of {} bytes with the digest {} and {} samples",
                              data.bytes, data.digest, setup.data.training_samples));
  if (data.packing) lines.push_back(fmt::format("packing {}", *data.packing));
  if (data.record_options) lines.push_back("records " + *data.record_options);
  lines.push_back("the mixture " + data.mixture);
  lines.push_back("the tokenizer " + setup.data.text_encoder);
  if (!setup.data.validation_data && !setup.data.questions) {
    lines.emplace_back("no held-out data");
    return lines;
  }
  lines.push_back("held-out data " + session::describe_held_out(setup.data));
  lines.push_back("held-out data with the digest " +
                  session::describe_held_out_content(setup.data));
  return lines;
}

/// `needs_held_out`: the option that cannot do without.
void check_data(const TrainSetup& setup, const std::string& needs_held_out) {
  const config::DataSettings& data = setup.settings.data;
  if (!needs_held_out.empty() && !setup.data.validation_data) {
    fail(ErrorCode::input, "{}: --split leaves no sample to evaluate, as {} asks for",
         config::describe(data.train_files), needs_held_out);
  }
  if (setup.settings.trains && data.drop_last &&
      setup.data.training_samples < setup.settings.train_batch_size) {
    fail(ErrorCode::input,
         "{}: {} samples of {} tokens do not fill one batch of {}, and --dataloader_drop_last "
         "leaves out what does not",
         setup.data.training_data->path(), setup.data.training_samples, data.block_size,
         setup.settings.train_batch_size);
  }
}

/// Each choice is a sequence of its own; frames are as long as the longest.
void settle_questions(config::DataSettings& settings, const data::ChoiceQuestions& questions) {
  std::int64_t tokens = 0;
  std::int64_t source = 0;
  for (const data::ChoiceSequence& sequence : questions.sequences()) {
    tokens = std::max(tokens, std::ssize(sequence.tokens));
    source = std::max(source, std::ssize(sequence.source));
  }
  settings.block_size = session::padded_length(tokens, settings.block_size);
  settings.source_length = session::padded_length(source, settings.source_length);
}

/// What was asked for that the device does not do.
void settle_device(config::TrainSettings& settings, DeviceKind device) {
  if (device != DeviceKind::cpu) return;
  if (settings.tf32) {
    settings.warnings.emplace_back(
        "--tf32: has no effect: TF32 is of GPUs; CPUs multiply fp32 as it is");
  }
  if (settings.tune_matmuls) {
    settings.warnings.emplace_back(
        "--tune_matmuls: has no effect: CPUs have one algorithm for each product, and nothing to "
        "tune");
  }
}

void refuse(const std::vector<std::string>& problems) {
  if (!problems.empty()) fail(ErrorCode::config, "{}", fmt::join(problems, "\n"));
}

}  // namespace

session::Remedies remedies_for(const TrainSetup& setup) {
  return {.device = [&](Bytes limit) { return describe_savings(setup, limit); },
          .machine =
              [&](int ranks, Bytes limit) {
                return describe_node_savings(setup, ranks, limit);
              }};
}

TrainPlace place_of(const WorkerEnv& worker) {
  return {.world_size = worker.world_size,
          .device = resolve_device(worker.device),
          .device_memory = worker.device_memory_bytes,
          .host_memory = worker.host_memory_bytes,
          .node_ranks = worker.local_rank == 0 ? worker.local_world_size : 0};
}

TrainSetup set_up_training(const config::TrainOptions& options, const TrainPlace& place) {
  TrainSetup setup;
  // Once without model and data, to learn which are meant; then with both.
  setup.settings = config::resolve(options, {.world_size = place.world_size,
                                             .train_samples = -1,
                                             .kept_batch = place.kept_batch})
                       .settings;
  const std::unique_ptr<model::ModelConfig> model = session::model_config(setup.settings.model);
  setup.model = model->make({setup.settings.dtype, setup.settings.model.in_splits, place.device});
  const std::string& directory = setup.settings.model.directory;
  if (!directory.empty()) setup.model.companions = session::stored_companions(directory);
  setup.settings.data.tokenizer = choose_tokenizer(setup.settings, *model);
  setup.of_bytes = model->byte_tokens || model->vocabulary() == data::byte_vocabulary;
  session::settle_lengths(setup.settings.data, setup.model);
  setup.data =
      session::open_data(setup.settings, setup.model, no_chat_template(setup.settings, *model));
  if (setup.data.questions) settle_questions(setup.settings.data, *setup.data.questions);
  session::refuse_unlearned(setup.data, options);
  std::ranges::move(setup.data.notes, std::back_inserter(setup.notes));
  take_tokenizer(setup, setup.settings.data.tokenizer);
  settle_bytes(setup, *model);
  for (const std::string& flag :
       {options.packing.typed_as, options.text_column.typed_as, options.role_names.typed_as}) {
    if (flag.empty() || !setup.data.training_data || setup.data.training_data->packing()) continue;
    setup.notes.push_back(fmt::format("{} has no effect: {} is no file of JSON lines", flag,
                                      setup.data.training_data->path()));
  }
  note_max_samples(setup, options.max_train_samples);
  const config::DataSettings data = setup.settings.data;
  setup.options = options;
  setup.context = {.world_size = place.world_size,
                   .hidden = setup.model.hidden,
                   .train_samples = setup.data.training_samples,
                   .kept_batch = place.kept_batch};
  config::Resolved resolved = config::resolve(options, setup.context);
  setup.settings = std::move(resolved.settings);
  setup.settings.data = data;
  std::string adapter = model::explain_idle_adapter(setup.settings.model.directory);
  if (!adapter.empty()) setup.settings.warnings.push_back(std::move(adapter));
  settle_device(setup.settings, place.device);
  check_data(setup, config::what_needs_held_out(options));
  refuse(session::unusable_disks(setup.settings.zero));
  if (setup.settings.trains) {
    setup.state = engine::describe_run(setup.settings, setup.model, place.world_size,
                                       describe_training_data(setup));
    setup.state.held_out = session::describe_held_out(setup.data);
    setup.state.held_out_content = session::describe_held_out_content(setup.data);
  }
  setup.alike = describe_alike(setup, config::option_values(options), resolved.effective);
  if (setup.settings.checkpoint.resume_from.empty()) {
    setup.initial_parameters =
        session::open_parameters(setup.settings.model, setup.model, setup.settings.seed);
    // As one of the ranks; random weights follow from options and the model.
    const bool compares =
        place.world_size > 1 && place.ranks_here == 0 && !setup.settings.model.directory.empty();
    if (compares) {
      setup.alike.push_back("weights with the digest " +
                            session::weights_digest(*setup.initial_parameters, setup.model));
    }
  }
  setup.memory = session::set_up_memory(setup.settings, setup.model, place.world_size);
  const session::Remedies remedies = remedies_for(setup);
  session::check_budget(setup.memory, place.device_memory, remedies);
  session::check_room(setup.memory, setup.model, place.room, remedies);
  if (place.node_ranks > 0) {
    session::check_machine(setup.memory, place.node_ranks, place.host_memory, remedies);
  }
  refuse(session::full_disks(setup.settings.zero, setup.memory.plan, place.ranks_here));
  return setup;
}

}  // namespace dstrain::cmd
