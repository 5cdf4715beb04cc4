#include "runtime/engine/run_check.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <vector>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/units.h"
#include "runtime/config/batch_size.h"
#include "runtime/config/given_batch.h"
#include "runtime/model/families.h"

namespace dstrain::engine {
namespace {

using Differences = std::vector<RunDifference>;

/// A size of the batch that the user is to set: under which option, or else key of the file.
struct BatchSetting {
  std::string_view option;
  std::string_view key;
  std::string_view origin;
  std::int64_t now = 0;
  std::int64_t wanted = 0;

  [[nodiscard]] bool in_file() const { return origin == "file" || origin == "elasticity"; }
  [[nodiscard]] bool given() const { return in_file() || origin.starts_with("flag "); }
  /// "--batch_size 2", "train_batch_size 4".
  [[nodiscard]] std::string text() const {
    const std::string_view name = in_file() ? key
                                  : origin.starts_with("flag ")
                                      ? origin.substr(origin.find(' ') + 1)
                                      : option;
    return fmt::format("{} {}", name, wanted);
  }
};

std::string batch_settings_text(const std::vector<BatchSetting>& settings) {
  std::vector<std::string> options;
  std::vector<std::string> keys;
  for (const BatchSetting& setting : settings) {
    (setting.in_file() ? keys : options).push_back(setting.text());
  }
  if (settings.front().origin == "elasticity") {
    return fmt::format("replace the section elasticity of the --deepspeed file by {}",
                       fmt::join(keys, ", "));
  }
  std::string typed = fmt::format("set {}", fmt::join(options, " "));
  if (keys.empty()) return typed;
  return fmt::format("{}{} in the --deepspeed file", options.empty() ? "set " : typed + ", and ",
                     fmt::join(keys, " and "));
}

/// How the ranks of this run get the batch of the checkpoint.
std::string batch_remedy(const TrainerState& saved, const TrainerState& run) {
  const std::int64_t batch = saved.train_batch_size;
  if (batch == run.train_batch_size) return {};
  if (batch < 1 || run.ranks < 1 || run.micro_batch_size < 1) {
    return fmt::format("set --global_batch_size {}", batch);
  }
  if (batch % run.ranks != 0) {
    const std::int64_t ranks = config::largest_divisor(batch, run.ranks);
    return fmt::format("{} cannot share a batch of {} evenly; launch {}",
                       counted(run.ranks, "rank"), batch, counted(ranks, "rank"));
  }
  const config::BatchOrigins& origins = run.batch_origins;
  BatchSetting train{"--global_batch_size", config::train_batch_key, origins.train,
                     run.train_batch_size, batch};
  BatchSetting micro{"--per_device_train_batch_size", config::micro_batch_key, origins.micro,
                     run.micro_batch_size};
  BatchSetting steps{"--gradient_accumulation_steps", config::accumulation_key,
                     origins.accumulation,
                     run.train_batch_size / (run.micro_batch_size * run.ranks)};
  const std::int64_t each = batch / run.ranks;
  const bool micro_follows = train.given() && !micro.given();
  if (micro_follows) {
    steps.wanted = steps.given() && each % steps.now == 0 ? steps.now : 1;
    micro.wanted = each / steps.wanted;
  } else {
    micro.wanted = config::largest_divisor(each, run.micro_batch_size);
    steps.wanted = each / micro.wanted;
  }
  const bool elastic = train.origin == "elasticity";
  const bool sets_train = train.given() || micro.wanted != micro.now;
  std::vector<BatchSetting> settings;
  if (sets_train) settings.push_back(train);
  if (elastic || (micro.wanted != micro.now && !micro_follows)) settings.push_back(micro);
  if (elastic || (steps.wanted != steps.now && (steps.given() || !sets_train))) {
    settings.push_back(steps);
  }
  return batch_settings_text(settings);
}

template <class T>
void compare(Differences& found,
             std::string_view name,
             const T& saved,
             const T& now,
             const std::string& remedy) {
  if (saved == now) return;
  found.push_back({fmt::format("{} is {} in the checkpoint and {} now", name, saved, now), remedy});
}

Differences model_differences(const model::ModelConfig& saved, const model::ModelConfig& now) {
  Differences found;
  for (const model::ConfigDifference& difference : saved.differences(now)) {
    compare(found, fmt::format("the model's {}", difference.key), difference.before,
            difference.after, "give the model of the checkpoint");
  }
  return found;
}

/// Compares files whose total length is that of the checkpoint.
void compare_contents(Differences& found,
                      const TrainingData& saved,
                      const TrainingData& run,
                      const std::string& remedy) {
  const auto named = [](const std::string& mixture) {
    return mixture.empty() ? "no mixture" : mixture;
  };
  if (saved.mixture != run.mixture) {
    compare(found, "the mixture of the training data", named(saved.mixture), named(run.mixture),
            remedy);
  } else if (!saved.digest.empty() && !run.digest.empty()) {
    compare(found, "the digest of the training data", saved.digest, run.digest, remedy);
  }
}

/// Whether both runs read text by one tokenizer, or a state does not say.
bool same_encoder(const TrainingData& saved, const TrainingData& run) {
  return saved.text_encoder.empty() || run.text_encoder.empty() ||
         saved.text_encoder == run.text_encoder;
}

/// With other tokens of the same text the run would go on, and learn a language of its own.
void compare_encoders(Differences& found,
                      const TrainingData& saved,
                      const TrainingData& run,
                      const std::string& checkpoint) {
  if (same_encoder(saved, run)) return;
  const auto named = [](const std::string& encoder) {
    return encoder == "byte" ? encoder : "the one whose files have the digest " + encoder;
  };
  compare(found, "the tokenizer", named(saved.text_encoder), named(run.text_encoder),
          fmt::format("set --tokenizer {}", saved.text_encoder == "byte" ? "byte" : checkpoint));
}

/// Whether both runs read the data as records, or as a stream, or a state does not say.
bool same_kind(const TrainingData& saved, const TrainingData& run) {
  return saved.digest.empty() || run.digest.empty() ||
         saved.packing.has_value() == run.packing.has_value();
}

bool same_packing(const TrainingData& saved, const TrainingData& run) {
  return !saved.packing || !run.packing || saved.packing == run.packing;
}

/// Whether the records were read under the same keys and names of roles.
bool same_record_options(const TrainingData& saved, const TrainingData& run) {
  return !saved.record_options || !run.record_options || saved.record_options == run.record_options;
}

std::string split_text(const std::vector<double>& split) {
  return split.empty() ? "none" : fmt::format("{}", fmt::join(split, ","));
}

std::string split_remedy(const std::vector<double>& split) {
  return split.empty() ? "leave out --split" : "set --split " + split_text(split);
}

/// How much of the data is trained on. Shares that only divide the rest differently are not
/// compared.
double training_share(const std::vector<double>& split) {
  return split.empty() ? 1 : split.front() / std::accumulate(split.begin(), split.end(), 0.0);
}

bool same_split(const TrainingData& saved, const TrainingData& run) {
  return !saved.split || !run.split || training_share(*saved.split) == training_share(*run.split);
}

/// For the same data, cut into samples in the same way.
std::string samples_remedy(const TrainingData& saved, const TrainingData& run) {
  if (!saved.max_samples || !run.max_samples) {
    return "give the --packing, --split and --max_train_samples of the run";
  }
  if (*saved.max_samples > 0) return fmt::format("set --max_train_samples {}", *saved.max_samples);
  if (*run.max_samples > 0) return "leave out --max_train_samples";
  if (saved.split != run.split) return split_remedy(saved.split.value_or(std::vector<double>()));
  return "give the data that the run began with";
}

void compare_lengths(Differences& found, const TrainerState& saved, const TrainerState& run) {
  const bool pairs = saved.source_length > 0;
  const std::string_view tokens = pairs ? "max_target_length" : "block_size";
  compare(found, tokens, saved.block_size, run.block_size,
          fmt::format("set --{} {}", tokens, saved.block_size));
  compare(found, "max_source_length", saved.source_length, run.source_length,
          fmt::format("set --max_source_length {}", saved.source_length));
}

/// The data themselves, and how they become samples.
void compare_data(Differences& all,
                  const TrainerState& saved_state,
                  const TrainerState& run_state,
                  const std::string& checkpoint) {
  const TrainingData& saved = saved_state.data;
  const TrainingData& run = run_state.data;
  Differences found;
  const std::string same_data =
      fmt::format("give the data that the run began with ({})", saved.file);
  compare(found, "the training data's size in bytes", saved.bytes, run.bytes, same_data);
  compare_encoders(found, saved, run, checkpoint);
  if (!same_kind(saved, run)) {
    const auto kind = [](const TrainingData& data) {
      return data.packing ? "JSON lines" : "a stream of text or tokens";
    };
    compare(found, "the training data's kind", std::string_view(kind(saved)),
            std::string_view(kind(run)), "give the file the ending that it had, " + saved.file);
  }
  if (!same_packing(saved, run)) {
    compare(found, "packing", *saved.packing, *run.packing,
            fmt::format("set --packing {}", *saved.packing));
  }
  if (!same_record_options(saved, run)) {
    const auto shown = [](const std::string& options) {
      return options.empty() ? "the defaults" : options;
    };
    compare(found, "how records are read", shown(*saved.record_options), shown(*run.record_options),
            "give the --text_column and --role_names of the run");
  }
  if (!same_split(saved, run)) {
    compare(found, "split", split_text(*saved.split), split_text(*run.split),
            split_remedy(*saved.split));
  }
  // Samples of other tokens, or made otherwise, are another number, too.
  const bool cut_alike = saved_state.block_size == run_state.block_size &&
                         same_encoder(saved, run) && same_kind(saved, run) &&
                         same_packing(saved, run) && same_record_options(saved, run) &&
                         same_split(saved, run);
  if (cut_alike && saved.bytes == run.bytes) {
    compare_contents(found, saved, run, same_data);
    if (found.empty()) {
      compare(found, "the number of samples", saved.samples, run.samples,
              samples_remedy(saved, run));
    }
    const std::int64_t batch = saved_state.train_batch_size;
    if (batch > 0 && saved.samples % batch != 0) {
      compare(found, "dataloader_drop_last", saved_state.drop_last, run_state.drop_last,
              fmt::format("set --dataloader_drop_last {0}, or, if the --deepspeed file has the "
                          "key, dataloader_drop_last {0} there",
                          saved_state.drop_last));
    }
  }
  std::ranges::move(found, std::back_inserter(all));
}

/// Its bytes are as they were written: what this version cannot read, another one has written.
std::unique_ptr<model::ModelConfig> read_model_config(const checkpoint::Checkpoint& checkpoint) {
  const std::string text = checkpoint.read_text("config.json");
  try {
    return model::parse_model_config(text, (checkpoint.path() / "config.json").string());
  } catch (const Error& error) {
    fail(ErrorCode::newer_format, "{}; {} wrote the checkpoint: use that version, or a newer one",
         error.what(), checkpoint.manifest().program);
  }
}

Differences model_differences(const checkpoint::Checkpoint& checkpoint, const model::Model& model) {
  if (!model::is_own_model(model.config_json)) {
    return model_differences(*read_model_config(checkpoint),
                             *model::parse_model_config(model.config_json, "config.json"));
  }
  Differences found;
  const auto saved = nlohmann::json::parse(checkpoint.read_text("config.json"));
  const auto now = nlohmann::json::parse(model.config_json);
  for (const auto& [key, value] : now.items()) {
    if (key == "torch_dtype") continue;
    compare(found, fmt::format("the model's {}", key), saved.value(key, nlohmann::json()).dump(),
            value.dump(), "give the model of the checkpoint");
  }
  const auto& stored = checkpoint.manifest().tensors;
  for (const model::ParameterSpec& parameter : model.parameters()) {
    const auto same = std::ranges::find(stored, parameter.name, &checkpoint::TensorRecord::name);
    compare(found, fmt::format("the shape of {}", parameter.name),
            same == stored.end() ? "none" : to_string(same->shape), to_string(parameter.shape),
            "give the model of the checkpoint");
  }
  return found;
}

/// A checkpoint without what this run's optimizer goes on from is whole, and another's.
Differences optimizer_differences(const checkpoint::Checkpoint& checkpoint,
                                  const TrainerState& saved,
                                  const TrainerState& run) {
  const auto missing = std::ranges::find_if(
      run.optimizer_states, [&](const std::string& name) { return !checkpoint.has_state(name); });
  if (missing == run.optimizer_states.end()) return {};
  return {{fmt::format("optimizer is {} in the checkpoint, which keeps no {}, and {} now",
                       optimizer_type(saved), *missing, optimizer_type(run)),
           fmt::format("give the checkpoint's (section optimizer of the --deepspeed file), or "
                       "train its weights anew with --model_name_or_path {} and another "
                       "--output_dir",
                       checkpoint.path().string())}};
}

}  // namespace

std::vector<RunDifference> data_differences(const TrainerState& saved,
                                            const TrainerState& run,
                                            const std::string& checkpoint) {
  if (saved.data.bytes == 0 && run.data.bytes > 0) {
    return {{"the checkpoint is of a program with data of its own",
             "train on it from here on with --ignore_data_skip"}};
  }
  Differences found;
  compare(found, "train_batch_size", saved.train_batch_size, run.train_batch_size,
          batch_remedy(saved, run));
  compare_lengths(found, saved, run);
  compare(found, "seed", saved.seed, run.seed, fmt::format("set --seed {}", saved.seed));
  compare(found, "separating documents", saved.documents, run.documents,
          saved.documents ? "set --reset_attention_mask" : "leave out --reset_attention_mask");
  compare(found, "shuffling", saved.shuffle, run.shuffle,
          saved.shuffle ? "leave out --no_shuffle" : "set --no_shuffle");
  if (saved.seed == run.seed && saved.shuffle && run.shuffle) {
    compare(found, "the seed of shuffling", saved.data_seed, run.data_seed,
            fmt::format("set --data_seed {}", saved.data_seed));
  }
  compare_data(found, saved, run, checkpoint);
  return found;
}

TrainerState read_run(const checkpoint::Checkpoint& checkpoint,
                      const TrainerState& run,
                      const model::Model& model,
                      OtherData other_data) {
  TrainerState saved = read_trainer_state(checkpoint);
  if (saved.global_step != checkpoint.manifest().step) {
    fail(ErrorCode::input, "{}: is of step {}, and the manifest beside it of step {}",
         (checkpoint.path() / trainer_state_file).string(), saved.global_step,
         checkpoint.manifest().step);
  }
  const Differences models = model_differences(checkpoint, model);
  const Differences data = data_differences(saved, run, checkpoint.path().string());
  const Differences optimizers = optimizer_differences(checkpoint, saved, run);
  const bool data_fit = data.empty() || other_data == OtherData::taken;
  if (models.empty() && optimizers.empty() && data_fit) return saved;
  std::vector<std::string> lines;
  for (const Differences& some : {models, optimizers, data_fit ? Differences() : data}) {
    for (const RunDifference& difference : some) {
      lines.push_back(fmt::format("{}: {}", difference.text, difference.remedy));
    }
  }
  if (models.empty() && optimizers.empty()) {
    lines.emplace_back(
        "or go on with these and the optimizer's state: add --ignore_data_skip; the data begin "
        "anew");
  }
  fail(ErrorCode::config, "{}: this run cannot go on from there:\n  {}", checkpoint.path().string(),
       fmt::join(lines, "\n  "));
}

}  // namespace dstrain::engine
