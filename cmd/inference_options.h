#pragma once
#include <optional>
#include <string>

#include "runtime/config/train_options.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}  // namespace CLI

namespace dstrain::cmd {

/// As typed: the model, and how it computes. `evaluate`, `generate` and `chat` have these.
struct InferenceOptions {
  std::string directory;
  std::string tokenizer;  ///< empty: the model's own, or bytes
  std::string deepspeed;
  std::string chat_date;
  std::optional<bool> bf16, fp16, tf32;
  std::string adapter;       ///< refused: adapters are not loaded
  std::string quantization;  ///< refused but for "none": weights have 16 or 32 bits
};

/// Declares an option that may be typed without its value, true or false.
void declare_switch(CLI::App& app,
                    const std::string& name,
                    std::optional<bool>& value,
                    const std::string& help);

void declare_inference_options(CLI::App& app, InferenceOptions& options);

/// Returns what these options are for `train`, which has the configuration of the weights. `tool`:
/// the command, for messages. Throws Error{usage} for an option that is refused.
config::TrainOptions as_training(const InferenceOptions& typed, const std::string& tool);

/// Checks paths and strategy, and lets the model compute in 16 bits if its weights are stored so.
/// Throws Error{usage, config, input}.
void complete_inference(config::TrainOptions& options, const std::string& tool);

/// Lets inference compute in 16 bits if all weights are stored so, unless options or configuration
/// say something else.
void choose_stored_dtype(config::TrainOptions& options);

}  // namespace dstrain::cmd
