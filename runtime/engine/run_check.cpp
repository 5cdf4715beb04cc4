#include "runtime/engine/run_check.h"

#include <vector>

#include <fmt/ranges.h>

#include "runtime/base/error.h"
#include "runtime/model/gpt2_config.h"

namespace dstrain::engine {
namespace {

using Lines = std::vector<std::string>;

std::string batch_remedy(const TrainerState& saved, const TrainerState& run) {
  const std::int64_t micro_step = run.micro_step_samples;
  if (micro_step > 0 && saved.train_batch_size % micro_step == 0) {
    return fmt::format("set --gradient_accumulation_steps {}", saved.train_batch_size / micro_step);
  }
  return fmt::format("set --global_batch_size {}, with a micro batch that divides it",
                     saved.train_batch_size);
}

template <class T>
void compare(
    Lines& lines, std::string_view name, const T& saved, const T& now, const std::string& remedy) {
  if (saved == now) return;
  lines.push_back(
      fmt::format("{} is {} in the checkpoint and {} now: {}", name, saved, now, remedy));
}

void compare_models(Lines& lines, const model::Gpt2Config& saved, const model::Gpt2Config& now) {
  for (const model::ConfigDifference& difference : model::differences(saved, now)) {
    lines.push_back(
        fmt::format("the model's {} is {} in the checkpoint and {} now: give the model "
                    "of the checkpoint",
                    difference.key, difference.before, difference.after));
  }
}

}  // namespace

TrainerState read_run(const checkpoint::Checkpoint& checkpoint,
                      const TrainerState& run,
                      const model::Model& model) {
  const auto place = [&](const char* file) {
    return (checkpoint.path() / file).string();
  };
  TrainerState saved =
      parse_trainer_state(checkpoint.read_text("trainer_state.json"), place("trainer_state.json"));
  Lines lines;
  compare_models(
      lines, model::parse_gpt2_config(checkpoint.read_text("config.json"), place("config.json")),
      model::parse_gpt2_config(model.config_json, "config.json"));
  compare(lines, "train_batch_size", saved.train_batch_size, run.train_batch_size,
          batch_remedy(saved, run));
  compare(lines, "block_size", saved.block_size, run.block_size,
          fmt::format("set --block_size {}", saved.block_size));
  compare(lines, "seed", saved.seed, run.seed, fmt::format("set --seed {}", saved.seed));
  compare(lines, "shuffling", saved.shuffle, run.shuffle,
          saved.shuffle ? "leave out --no_shuffle" : "set --no_shuffle");
  if (saved.seed == run.seed && saved.shuffle && run.shuffle) {
    compare(lines, "the seed of shuffling", saved.data_seed, run.data_seed,
            fmt::format("set --data_seed {}", saved.data_seed));
  }
  const std::string same_data =
      fmt::format("give the data that the run began with ({})", saved.train_file);
  compare(lines, "the training data's size in bytes", saved.train_file_bytes, run.train_file_bytes,
          same_data);
  if (saved.block_size == run.block_size) {
    compare(
        lines, "the number of samples", saved.samples, run.samples,
        saved.train_file_bytes == run.train_file_bytes
            ? fmt::format("set --max_train_samples {}, or the --split of the run", saved.samples)
            : same_data);
  }
  if (lines.empty()) return saved;
  fail(ErrorCode::config, "{}: this run cannot go on from there:\n  {}", checkpoint.path().string(),
       fmt::join(lines, "\n  "));
}

}  // namespace dstrain::engine
