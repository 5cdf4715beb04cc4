#include "cmd/train_setup.h"

#include <algorithm>
#include <iterator>
#include <span>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cmd/memory_savings.h"
#include "cmd/model_loading.h"
#include "cmd/offload_disks.h"
#include "runtime/config/resolve.h"
#include "runtime/data/content_digest.h"
#include "runtime/data/hugging_face_encoder.h"
#include "runtime/data/tokenizer.h"
#include "runtime/model/float16_source.h"
#include "runtime/model/hf_companions.h"
#include "runtime/model/other_formats.h"
#include "runtime/model/random_source.h"
#include "runtime/ops/library_memory.h"

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
  if (!setup.text_tokens) return;
  setup.model.config_json = model::with_text_tokens(setup.model.config_json, *setup.text_tokens);
  std::vector<model::CompanionFile>& own = setup.model.companions;
  std::erase_if(own, model::is_of_tokenizer);
  for (model::CompanionFile& file : own) {
    file.bytes = model::with_text_tokens(file.bytes, *setup.text_tokens);
  }
  std::ranges::move(model::read_tokenizer_files(tokenizer), std::back_inserter(own));
}

/// Text that is read as bytes. That is what the user means who types so, or has a vocabulary of
/// bytes; a model that was trained on other tokens would forget all that it knows of them.
void settle_bytes(TrainSetup& setup, model::ModelConfig& model) {
  const auto is_text = [](const auto& source) {
    return source && source->is_text();
  };
  const bool trains_on_text = is_text(setup.training_data);
  const bool text = trains_on_text || is_text(setup.validation_data);
  config::TrainSettings& settings = setup.settings;
  if (!text || settings.data.tokenizer != "byte") return;
  if (model.vocabulary() == data::byte_vocabulary) return;
  const std::string& file = (trains_on_text ? setup.training_data : setup.validation_data)->path();
  if (!settings.data.tokenizer_given && !model.byte_tokens && !settings.model.directory.empty()) {
    fail(ErrorCode::usage,
         "{}: is text, and the model in {} has a vocabulary of {}, not of 256 bytes, and no "
         "tokenizer beside it: add --tokenizer DIR with its tokenizer's files, give a file of its "
         "own tokens (llm.c's .bin), or add --tokenizer byte to train it on the bytes of the text "
         "as ids 0 to 255",
         file, settings.model.directory, model.vocabulary());
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
  if (flag.typed_as != "--max_samples" || !setup.training_data) return;
  const bool packed = setup.training_data->packing().value_or(false);
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
  const data::SampleSource& source = *setup.training_data;
  const config::DataSettings& data = setup.settings.data;
  return {.file = source.name(),
          .bytes = source.bytes(),
          .digest = source.digest(),
          .samples = setup.training_samples,
          .mixture = source.mixture(),
          .text_encoder = source.is_text() ? setup.text_encoder : "",
          .packing = source.packing(),
          .split = data.split,
          .max_samples = data.max_train_samples};
}

std::vector<std::string> describe_alike(const TrainSetup& setup,
                                        DeviceKind device,
                                        std::vector<std::string> lines,
                                        const std::vector<config::EffectiveValue>& effective) {
  for (const config::EffectiveValue& value : effective) {
    if (!value.path.ends_with("nvme_path")) lines.push_back(value.path + " " + value.json);
  }
  lines.push_back("the device " + std::string(name_of(device)));
  lines.emplace_back(setup.settings.output.profile.empty() ? "no --profile" : "a --profile");
  const auto model = nlohmann::json::parse(setup.model.config_json);
  for (const auto& [key, value] : model.items()) {
    lines.push_back(fmt::format("a model with {} {}", key, value.dump()));
  }
  const engine::TrainingData& data = setup.state.data;
  lines.push_back(fmt::format("training data of {} bytes with the digest {} and {} samples",
                              data.bytes, data.digest, setup.training_samples));
  if (data.packing) lines.push_back(fmt::format("packing {}", *data.packing));
  lines.push_back("the mixture " + data.mixture);
  lines.push_back("the tokenizer " + setup.text_encoder);
  if (!setup.validation_data) {
    lines.emplace_back("no held-out data");
    return lines;
  }
  lines.push_back("held-out data " + describe_held_out(setup));
  lines.push_back("held-out data with the digest " + describe_held_out_content(setup));
  return lines;
}

/// `needs_held_out`: the option that cannot do without.
void check_data(const TrainSetup& setup, const std::string& needs_held_out) {
  const config::DataSettings& data = setup.settings.data;
  if (!needs_held_out.empty() && !setup.validation_data) {
    fail(ErrorCode::input, "{}: --split leaves no sample to evaluate, as {} asks for",
         config::describe(data.train_files), needs_held_out);
  }
  if (setup.settings.trains && data.drop_last &&
      setup.training_samples < setup.settings.train_batch_size) {
    fail(ErrorCode::input,
         "{}: {} samples of {} tokens do not fill one batch of {}, and --dataloader_drop_last "
         "leaves out what does not",
         setup.training_data->path(), setup.training_samples, data.block_size,
         setup.settings.train_batch_size);
  }
}

std::unique_ptr<model::ParameterSource> open_parameters(const TrainSetup& setup) {
  const std::string& directory = setup.settings.model.directory;
  if (directory.empty()) {
    return std::make_unique<model::RandomSource>(setup.settings.seed, setup.model.parameters());
  }
  std::unique_ptr<model::ParameterSource> stored = open_weights(directory, setup.model).parameters;
  if (setup.model.dtype != DType::f16) return stored;
  return std::make_unique<model::Float16Source>(std::move(stored));
}

/// A digest of all values of a model of up to some 270 million parameters, and of as many blocks of
/// a larger one, evenly apart: what differs in a few rows alone may lie between these.
std::string weights_digest(const model::ParameterSource& weights, const model::Model& model) {
  constexpr std::int64_t values_most = std::int64_t{1} << 28;
  constexpr std::int64_t block = std::int64_t{1} << 14;
  const std::int64_t stride = model.parameter_count() / values_most + 1;
  std::vector<Checksum> checksums;
  std::vector<float> values;
  for (const model::ParameterSpec& spec : model.parameters()) {
    for (std::int64_t at = 0; at < spec.shape.numel(); at += stride * block) {
      values.resize(static_cast<std::size_t>(std::min(block, spec.shape.numel() - at)));
      weights.read(spec, at, values);
      checksums.push_back(checksum_of(std::as_bytes(std::span(values))));
    }
  }
  return data::digest_text(data::combined(checksums));
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

[[noreturn]] void refuse_plan(const TrainSetup& setup, const std::string& limit, Bytes budget) {
  fail(ErrorCode::config, "the run needs {} of device memory per rank and {} ({}); {}",
       format_bytes(setup.plan.total()), limit, zero::describe(setup.plan, setup.formula),
       describe_savings(setup, budget));
}

void check_budget(const TrainSetup& setup, Bytes budget) {
  if (budget == 0 || setup.plan.total() <= budget) return;
  refuse_plan(setup, fmt::format("--device_memory allows {}", format_bytes(budget)), budget);
}

/// What all ranks of the machine need together.
void check_machine(const TrainSetup& setup, const TrainPlace& place) {
  if (place.node_ranks == 0) return;
  const auto exceeded = session::exceeded_memory(setup.plan, place.node_ranks, place.host_memory);
  if (!exceeded) return;
  fail(ErrorCode::config, "{} ({}); {}{}", exceeded->reason,
       zero::describe(setup.plan, setup.formula),
       describe_node_savings(setup, place.node_ranks, exceeded->bytes),
       place.host_memory > 0
           ? ""
           : "; --host_memory SIZE overrides it, as does DSTRAIN_HOST_MEMORY in bytes");
}

}  // namespace

void check_room(const TrainSetup& setup, const session::DeviceRoom& room) {
  const Bytes libraries =
      ops::library_bytes(setup.model.device, static_cast<int>(setup.context.world_size));
  if (room.free == 0 || setup.plan.total() + libraries <= room.free) return;
  refuse_plan(setup,
              fmt::format("GPU {} has {} free for each, of which CUDA's libraries may take {}",
                          room.gpu, format_bytes(room.free), format_bytes(libraries)),
              std::max<Bytes>(room.free - libraries, 1));
}

TrainSetup set_up_training(const config::TrainOptions& options, const TrainPlace& place) {
  TrainSetup setup;
  // Once without model and data, to learn which are meant; then with both.
  setup.settings = config::resolve(options, {.world_size = place.world_size,
                                             .train_samples = -1,
                                             .kept_batch = place.kept_batch})
                       .settings;
  const std::unique_ptr<model::ModelConfig> model = model_config(setup.settings.model);
  setup.model = model->make({setup.settings.dtype, setup.settings.model.in_splits, place.device});
  const std::string& directory = setup.settings.model.directory;
  if (!directory.empty()) setup.model.companions = stored_companions(directory);
  setup.settings.data.tokenizer = choose_tokenizer(setup.settings, *model);
  settle_lengths(setup.settings.data, setup.model);
  RunData& opened = setup;
  opened = open_data(setup.settings, setup.model, no_chat_template(setup.settings, *model));
  refuse_unlearned(opened, options);
  std::ranges::move(setup.data_notes, std::back_inserter(setup.notes));
  take_tokenizer(setup, setup.settings.data.tokenizer);
  settle_bytes(setup, *model);
  if (options.packing.typed() && setup.training_data && !setup.training_data->packing()) {
    setup.notes.push_back(fmt::format("{} has no effect: {} is no file of JSON lines",
                                      options.packing.typed_as, setup.training_data->path()));
  }
  note_max_samples(setup, options.max_train_samples);
  const config::DataSettings data = setup.settings.data;
  setup.options = options;
  setup.context = {.world_size = place.world_size,
                   .hidden = setup.model.hidden,
                   .train_samples = setup.training_samples,
                   .kept_batch = place.kept_batch};
  config::Resolved resolved = config::resolve(options, setup.context);
  setup.settings = std::move(resolved.settings);
  setup.settings.data = data;
  std::string adapter = model::explain_idle_adapter(setup.settings.model.directory);
  if (!adapter.empty()) setup.settings.warnings.push_back(std::move(adapter));
  settle_device(setup.settings, place.device);
  check_data(setup, config::what_needs_held_out(options));
  refuse(unusable_disks(setup.settings.zero));
  if (setup.settings.trains) {
    setup.state = engine::describe_run(setup.settings, setup.model, place.world_size,
                                       describe_training_data(setup));
    setup.state.held_out = describe_held_out(setup);
    setup.state.held_out_content = describe_held_out_content(setup);
  }
  setup.alike =
      describe_alike(setup, place.device, config::option_values(options), resolved.effective);
  if (setup.settings.checkpoint.resume_from.empty()) {
    setup.initial_parameters = open_parameters(setup);
    // As one of the ranks; random weights follow from options and the model.
    const bool compares =
        place.world_size > 1 && place.ranks_here == 0 && !setup.settings.model.directory.empty();
    if (compares) {
      setup.alike.push_back("weights with the digest " +
                            weights_digest(*setup.initial_parameters, setup.model));
    }
  }
  session::MemorySetup& memory = setup;
  memory = session::set_up_memory(setup.settings, setup.model, place.world_size);
  check_budget(setup, place.device_memory);
  check_room(setup, place.room);
  check_machine(setup, place);
  refuse(full_disks(setup.settings.zero, memory.plan, place.ranks_here));
  return setup;
}

}  // namespace dstrain::cmd
