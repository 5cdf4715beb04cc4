#include "runtime/config/foreign_remedies.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/number.h"
#include "runtime/base/shell_word.h"
#include "runtime/config/choice.h"

namespace dstrain::config {
namespace {

/// Suggests to hold out this percentage of the training file. Empty unless both parts have data.
std::string split_remedy(double percent) {
  constexpr double whole = 100;
  if (!(percent > 0 && percent < whole)) return {};
  const double rounded = std::round(percent * 1e6) / 1e6;  // 0.1 * 100 is not exact
  return fmt::format(", or --split {},{},0", whole - rounded, rounded);
}

std::string held_out(const std::string& split, const TrainOptions& options) {
  const std::string& typed =
      options.split.typed() ? options.split.typed_as : options.validation_file.typed_as;
  return typed.empty() ? fmt::format("give --validation_file FILE{}", split)
                       : fmt::format("{} names the held-out data already", typed);
}

/// Suggests a stage that can offload this: the one of --zero_stage if it can.
std::string device_key(std::string_view key,
                       const std::string& value,
                       const TrainOptions& options) {
  const bool disk = lower_case(value) == "nvme";
  const std::int64_t least = disk || key == "offload_param" ? 3 : 1;
  const std::int64_t stage =
      std::max({least, options.zero_stage.value,
                static_cast<std::int64_t>(options.zero_stage.typed() ? 1 : 2)});
  return fmt::format(
      R"(put {{"zero_optimization": {{"stage": {}, "{}": {{"device": "{}"{}}}}}}} into the )"
      "configuration that --deepspeed names",
      stage, key, disk ? "nvme" : "cpu", disk ? R"(, "nvme_path": "DIR")" : "");
}

/// Returns jq's path of a key: ".content".
std::string jq_key(const std::string& key) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
  const bool simple =
      key.find_first_not_of(plain) == std::string::npos && key.find_first_of("0123456789") != 0;
  return simple ? "." + key : fmt::format(".[{}]", nlohmann::json(key).dump());
}

/// Returns a command that runs a jq program on the training file, to end a message.
std::string renaming(const std::string& program, const TrainOptions& options) {
  const auto& files = options.train_file.value;
  const std::string file = files.size() == 1 ? shell_path(files.front().path) : "FILE";
  return command_below(fmt::format("jq -c {} {} > renamed.jsonl", shell_word(program), file));
}

std::string rename_key(const std::string& key, std::string_view own, const TrainOptions& options) {
  const std::string program = fmt::format(".{} = {} | del({})", own, jq_key(key), jq_key(key));
  return fmt::format("rename the key of the records to {}{}", own, renaming(program, options));
}

}  // namespace

std::string tell_data_sets(const std::string& /*value*/, const TrainOptions& options) {
  return options.train_file.typed()
             ? fmt::format("data sets are not downloaded; {} names the data already",
                           options.train_file.typed_as)
             : "data sets are not downloaded; give --train_file FILE";
}

std::string tell_split_of_percentage(const std::string& value, const TrainOptions& options) {
  return held_out(split_remedy(parse_number<double>(value).value_or(0)), options);
}

std::string tell_split_of_size(const std::string& value, const TrainOptions& options) {
  const double size = parse_number<double>(value).value_or(0);
  if (size > 0 && size < 1) return held_out(split_remedy(size * 100), options);
  return held_out(", or a part of the data, as in --split 95,5,0", options);
}

std::string tell_data_split(const std::string& value, const TrainOptions& /*options*/) {
  const std::vector<double> weights = split_weights(value);
  std::string part;
  if (!weights.empty() && weights[0] > 0 && weights[1] + weights[2] > 0) {
    part = fmt::format(", or give --split {},0,{} to train on the first stage's part", weights[0],
                       weights[1] + weights[2]);
  }
  return fmt::format(
      "the stages of DeepSpeed-Chat do not share a file here; leave it out to train on all of it{}",
      part);
}

std::string cosine_section(double ratio, std::string_view steps) {
  return fmt::format(
      R"("scheduler": {{"type": "WarmupCosineLR", "params": {{"cos_min_ratio": {:.6g}, )"
      R"("total_num_steps": {}, "warmup_num_steps": "auto", "warmup_type": "linear"}}}})",
      ratio, steps);
}

std::string tell_scheduler_kwargs(const std::string& value, const TrainOptions& options) {
  const auto kwargs = nlohmann::json::parse(value, nullptr, false);
  const auto number = [&](const char* key) -> std::optional<double> {
    if (!kwargs.is_object() || !kwargs.contains(key) || !kwargs[key].is_number()) return {};
    return kwargs[key].get<double>();
  };
  std::optional<double> ratio = number("min_lr_rate");
  const std::optional<double> lowest = number("min_lr");
  if (!ratio && lowest && options.learning_rate.value > 0) {
    ratio = *lowest / options.learning_rate.value;
  }
  if (!ratio) {
    return "not implemented; the types of scheduler.type in the configuration have parameters";
  }
  return fmt::format(
      "for a cosine that ends there, leave out --lr_scheduler_type too and put into the "
      "configuration {}",
      cosine_section(*ratio));
}

std::string tell_finetuning_type(const std::string& value, const TrainOptions& /*options*/) {
  const std::string type = lower_case(value);
  return fmt::format("{} not implemented; all parameters are trained",
                     type.ends_with("lora") ? "LoRA is"
                     : type == "freeze"     ? "frozen layers are"
                                            : "that is");
}

std::string tell_fsdp(const std::string& value, const TrainOptions& /*options*/) {
  const std::string word = lower_case(value);
  const auto has = [&](std::string_view part) {
    return word.find(part) != std::string::npos;
  };
  const int stage = has("full_shard") || has("hybrid_shard") ? 3 : has("shard_grad_op") ? 2 : -1;
  return stage < 0 ? "FSDP is not implemented; --zero_stage 3 shards likewise"
                   : fmt::format("FSDP is not implemented; use --zero_stage {}", stage);
}

std::string tell_offload_optimizer(const std::string& value, const TrainOptions& options) {
  return device_key("offload_optimizer", value, options);
}

std::string tell_offload_param(const std::string& value, const TrainOptions& options) {
  return device_key("offload_param", value, options);
}

std::string tell_offloaded_optimizer(const std::string& /*value*/, const TrainOptions& options) {
  return device_key("offload_optimizer", "cpu", options);
}

std::string tell_dropout(const std::string& value, const TrainOptions& /*options*/) {
  const bool number = parse_number<double>(value).has_value();
  return fmt::format("use --attention_dropout {0} --hidden_dropout {0}", number ? value : "X");
}

std::string tell_max_eval_steps(const std::string& value, const TrainOptions& options) {
  const auto batches = parse_number<std::int64_t>(value);
  const std::int64_t own = options.per_device_eval_batch_size.value;
  const std::int64_t batch = own > 0 ? own : options.per_device_train_batch_size.value;
  constexpr std::int64_t most = 1'000'000'000;
  if (!batches || *batches < 1 || *batches > most || batch > most) {
    return "use --max_eval_samples N, which counts samples instead of batches";
  }
  return fmt::format("use --max_eval_samples {}, {} batches of {} samples on one rank",
                     *batches * batch, *batches, batch);
}

std::string tell_prompt_key(const std::string& value, const TrainOptions& options) {
  return rename_key(value, "prompt", options);
}

std::string tell_completion_key(const std::string& value, const TrainOptions& options) {
  return rename_key(value, "completion", options);
}

std::string tell_keys(const TrainOptions& options) {
  const std::string prompt = jq_key(options.prompt_key.value);
  const std::string completion = jq_key(options.completion_key.value);
  const std::string program =
      fmt::format(".prompt = {0} | .completion = {1} | del({0}, {1})", prompt, completion);
  return "rename the keys of the records to prompt and completion" + renaming(program, options);
}

std::string tell_train_samples(const std::string& value, const TrainOptions& options) {
  const auto samples = parse_number<std::int64_t>(value);
  const std::int64_t batch = options.global_batch_size.value;
  if (!samples || *samples < 1 || batch < 1) {
    return "give --max_steps N, the samples divided by those of a step";
  }
  return fmt::format("give --max_steps {}, of {} samples", (*samples + batch - 1) / batch, batch);
}

int zero_stage_named(std::string_view name) {
  constexpr std::string_view prefix = "default-";
  if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  constexpr std::array<std::string_view, 4> stages{"zero0", "zero1", "zero2", "zero3"};
  const auto* const found = std::ranges::find(stages, name);
  return found == stages.end() ? -1 : static_cast<int>(found - stages.begin());
}

}  // namespace dstrain::config
