#include "cmd/inference_options.h"

#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include "runtime/base/error.h"
#include "runtime/config/ds_config.h"
#include "runtime/session/model_loading.h"

namespace dstrain::cmd {
namespace {

void refuse_other_weights(const InferenceOptions& typed, const std::string& tool) {
  if (!typed.adapter.empty()) {
    fail(ErrorCode::usage, "{}: --adapter_name_or_path: adapters are not implemented", tool);
  }
  if (!typed.quantization.empty() && typed.quantization != "none") {
    fail(ErrorCode::usage, "{}: --quantization {}: not implemented; leave it out, or give none",
         tool, typed.quantization);
  }
}

}  // namespace

void declare_switch(CLI::App& app,
                    const std::string& name,
                    std::optional<bool>& value,
                    const std::string& help) {
  app.add_option(name, value, help)
      ->expected(0, 1)
      ->default_str("true")
      ->option_text("[true|false]");
}

void declare_inference_options(CLI::App& app, InferenceOptions& options) {
  app.add_option("--model_name_or_path", options.directory,
                 "Hugging Face model directory, or checkpoint-N of a training run")
      ->required();
  app.add_option("--tokenizer", options.tokenizer,
                 "byte, or a directory with a tokenizer's files [the model's, else byte]");
  app.add_option("--chat_date", options.chat_date,
                 "day that chat templates write, YYYY-MM-DD [refused]");
  declare_switch(app, "--bf16", options.bf16, "compute in bf16 [the type of the stored weights]");
  declare_switch(app, "--fp16", options.fp16, "compute in fp16 [the type of the stored weights]");
  declare_switch(app, "--tf32", options.tf32, "GPUs multiply fp32 in TF32 [false]");
  app.add_option("--deepspeed,--deepspeed_config", options.deepspeed,
                 "DeepSpeed configuration; its ZeRO stage and offload_param say where the weights "
                 "are");
  app.add_option("--adapter_name_or_path", options.adapter)->group("");
  app.add_option("--quantization", options.quantization)->group("");
}

config::TrainOptions as_training(const InferenceOptions& typed, const std::string& tool) {
  refuse_other_weights(typed, tool);
  config::TrainOptions options;
  const auto set_text = [](config::Flag<std::string>& flag, const std::string& value,
                           const char* name) {
    if (!value.empty()) flag = {value, name};
  };
  const auto set_switch = [](config::Flag<bool>& flag, std::optional<bool> value,
                             const char* name) {
    if (value) flag = {*value, name};
  };
  options.inference = true;
  options.model_name_or_path = {typed.directory, "--model_name_or_path"};
  set_text(options.deepspeed, typed.deepspeed, "--deepspeed");
  set_text(options.chat_date, typed.chat_date, "--chat_date");
  set_switch(options.bf16, typed.bf16, "--bf16");
  set_switch(options.fp16, typed.fp16, "--fp16");
  set_switch(options.tf32, typed.tf32, "--tf32");
  return options;
}

void complete_inference(config::TrainOptions& options, const std::string& tool) {
  config::check_train_paths(options);
  const std::vector<std::string> problems = config::strategy_problems(options);
  if (!problems.empty()) fail(ErrorCode::usage, "{}: {}", tool, fmt::join(problems, "\n"));
  choose_stored_dtype(options);
}

void choose_stored_dtype(config::TrainOptions& options) {
  const config::DsConfig config = config::DsConfig::of(options);
  const auto is_said = [&](const config::Flag<bool>& flag, const char* key) {
    return flag.typed() || config.boolean(key).has_value();
  };
  if (is_said(options.bf16, "bf16.enabled") || is_said(options.fp16, "fp16.enabled")) return;
  const config::ModelSettings settings{.directory = options.model_name_or_path.value};
  const DType stored =
      session::open_weights(settings, session::model_config(settings)->make()).dtype;
  options.bf16.value = stored == DType::bf16;
  options.fp16.value = stored == DType::f16;
}

}  // namespace dstrain::cmd
