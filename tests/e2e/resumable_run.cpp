#include "tests/e2e/resumable_run.h"

#include <fstream>

#include <fmt/format.h>

namespace dstrain::test {

using nlohmann::json;

json ResumableRun::config() const {
  json config{
      {"train_batch_size", 12},
      {"optimizer", {{"type", optimizer}, {"params", {{"lr", 2e-3}, {"weight_decay", 0.1}}}}},
      {"scheduler",
       {{"type", "WarmupLR"}, {"params", {{"warmup_max_lr", 2e-3}, {"warmup_num_steps", 8}}}}},
      {"gradient_clipping", clipping},
      {"bf16", {{"enabled", bf16}}},
      {"zero_optimization", {{"stage", stage}, {"stage3_param_persistence_threshold", 300}}}};
  if (!fp16.is_null()) config["fp16"] = fp16;
  if (in_16_bits) {
    config["bf16"]["bf16_master_weights_and_grads"] = true;
    config["bf16"]["bf16_optimizer_states"] = true;
  }
  if (micro_batch > 0) config["train_micro_batch_size_per_gpu"] = micro_batch;
  config["zero_optimization"].update(zero);
  return config;
}

std::vector<std::string> ResumableRun::arguments(int max_steps) const {
  std::vector<std::string> arguments{
      "--config_name",
      "gpt2",
      "--config_overrides",
      "n_layer=2,n_embd=48,n_head=4,vocab_size=160,n_positions=32,embd_pdrop=0.1,"
      "attn_pdrop=0.1,resid_pdrop=0.1",
      "--block_size",
      "32",
      "--save_steps",
      "100",
      "--max_steps",
      fmt::format("{}", max_steps),
      "--gradient_checkpointing",
      checkpointed_activations ? "1" : "0"};
  arguments.emplace_back("--train_file");
  arguments.insert(arguments.end(), train_file.begin(), train_file.end());
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<std::string> ResumableRun::endless(const std::filesystem::path& output,
                                               const std::vector<std::string>& extra) const {
  const std::string file = output.string() + ".json";
  std::ofstream(file) << config().dump();
  std::vector<std::string> command{"--num_gpus",   fmt::format("{}", ranks), "train",
                                   "--output_dir", output.string(),          "--deepspeed",
                                   file,           "--logging_steps",        "1"};
  for (const std::string& word : arguments(1'000'000)) command.push_back(word);
  command.insert(command.end(), {"--save_steps", "0"});
  command.insert(command.end(), extra.begin(), extra.end());
  return command;
}

TrainRun ResumableRun::train(const std::filesystem::path& output,
                             int max_steps,
                             std::vector<std::string> extra) const {
  std::vector<std::string> all = arguments(max_steps);
  all.insert(all.end(), extra.begin(), extra.end());
  return run_train(ranks, config(), output, std::move(all), environment);
}

TrainRun ResumableRun::resume(const std::filesystem::path& output,
                              int max_steps,
                              std::vector<std::string> extra) const {
  extra.insert(extra.begin(), {"--resume_from_checkpoint", "latest"});
  return train(output, max_steps, std::move(extra));
}

std::vector<std::string> train_command(const std::filesystem::path& output) {
  std::vector<std::string> words{"train", "--output_dir", output.string(), "--save_steps", "0"};
  for (std::string& word : ResumableRun().arguments(2)) words.push_back(std::move(word));
  return words;
}

std::vector<std::string> results_of(const TrainRun& run) {
  std::vector<std::string> results;
  for (const json& line : run.metrics) {
    std::string result;
    for (const char* key : {"step", "epoch", "loss", "learning_rate", "grad_norm", "tokens"}) {
      result += fmt::format("{}={} ", key, line.value(key, json()).dump());
    }
    results.push_back(std::move(result));
  }
  return results;
}

void flip_byte(const std::filesystem::path& file, std::uintmax_t at) {
  std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekg(static_cast<std::streamoff>(at));
  const int old = bytes.get();
  bytes.seekp(static_cast<std::streamoff>(at));
  bytes.put(static_cast<char>(old ^ 0x10));
}

}  // namespace dstrain::test
