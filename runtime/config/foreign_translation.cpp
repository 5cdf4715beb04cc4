// Translates other programs' options that we have with another name, other words or the opposite
// meaning.
#include <algorithm>

#include <fmt/format.h>

#include "runtime/config/choice.h"
#include "runtime/config/foreign_remedies.h"
#include "runtime/config/train_flags.h"

namespace dstrain::config {
namespace {

using Lines = std::vector<std::string>;

/// Accepts Python's and YAML's words for true, false and null.
void translate_resume(TrainOptions& options) {
  Flag<std::string>& resume = options.resume_from_checkpoint;
  const std::string word = lower_case(resume.value);
  if (word == "true" || word == "1") resume.value = "true";
  if (word == "false" || word == "0" || word == "none" || word == "null") resume.value = "false";
}

/// Megatron warms up under all styles. Without a warmup, its inverse square root falls from the
/// first step on, but Hugging Face's from step 10000.
void translate_decay(TrainOptions& options, Lines& problems) {
  const Flag<std::string>& style = options.lr_decay_style;
  Flag<std::string>& type = options.lr_scheduler_type;
  if (!style.typed()) return;
  const bool constant = style.value == "constant";
  const bool root = style.value == "inverse-square-root";
  const std::string own = constant ? "constant_with_warmup" : root ? "inverse_sqrt" : style.value;
  const bool both_constant = constant && type.value == "constant";
  if (type.typed() && type.value != own && !both_constant) {
    problems.push_back(fmt::format("{} {} and {} {} are two schedules; keep one", type.typed_as,
                                   type.value, style.typed_as, style.value));
  }
  if (root && options.warmup_steps.value <= 0 && options.warmup_ratio.value <= 0) {
    problems.push_back(fmt::format("{} {}: needs --warmup_steps N, of which its rates are parts",
                                   style.typed_as, style.value));
  }
  if (!type.typed()) type = {own, style.typed_as};
}

void translate_precision(TrainOptions& options, Lines& problems) {
  const Flag<std::string>& type = options.precision;
  if (!type.typed()) return;
  const auto say = [&](Flag<bool>& flag, bool value) {
    if (flag.typed() && flag.value != value) {
      problems.push_back(fmt::format("{} {} and {} {} contradict each other; keep one",
                                     type.typed_as, type.value, flag.typed_as, flag.value));
    } else if (value && !flag.typed()) {
      flag = {true, type.typed_as};
    }
  };
  say(options.bf16, type.value.starts_with("bf16"));
  say(options.fp16, type.value == "fp16" || type.value == "16-mixed");
}

void translate_optimizer(TrainOptions& options) {
  const Flag<std::string>& name = options.optimizer;
  if (name.typed() && !options.optim.typed()) options.optim.typed_as = name.typed_as;
}

void translate_checkpointing(TrainOptions& options, Lines& problems) {
  const Flag<bool>& off = options.disable_gradient_checkpointing;
  const Flag<bool>& on = options.gradient_checkpointing;
  if (!off.typed()) return;
  if (off.value && on.value) {
    problems.push_back(
        fmt::format("{} and {} contradict each other; keep one", on.typed_as, off.typed_as));
  } else if (!off.value && !on.typed()) {
    options.warnings.push_back(fmt::format(
        "{} false: has no effect: --gradient_checkpointing recomputes activations", off.typed_as));
  }
}

void translate_initialization(TrainOptions& options) {
  Flag<double>& spread = options.init_method_std;
  if (!spread.typed() || !options.model_name_or_path.typed()) return;
  options.warnings.push_back(fmt::format("{}: has no effect: {} brings its weights",
                                         spread.typed_as, options.model_name_or_path.typed_as));
  spread = {};
}

/// Combines the renames of both keys into one command.
void join_renames(const TrainOptions& options, Lines& problems) {
  const auto tells_of = [](const Flag<std::string>& key) {
    return [&key](const std::string& line) {
      return key.typed() && line.starts_with(fmt::format("{} {}: ", key.typed_as, key.value));
    };
  };
  const Flag<std::string>& prompt = options.prompt_key;
  const Flag<std::string>& completion = options.completion_key;
  const bool both = std::ranges::any_of(problems, tells_of(prompt)) &&
                    std::ranges::any_of(problems, tells_of(completion));
  if (!both) return;
  std::erase_if(problems, tells_of(completion));
  *std::ranges::find_if(problems, tells_of(prompt)) =
      fmt::format("{} {} and {} {}: leave both out, and {}", prompt.typed_as, prompt.value,
                  completion.typed_as, completion.value, tell_keys(options));
}

}  // namespace

void translate_foreign(TrainOptions& options, Lines& problems) {
  translate_resume(options);
  translate_decay(options, problems);
  translate_precision(options, problems);
  translate_optimizer(options);
  translate_checkpointing(options, problems);
  translate_initialization(options);
  join_renames(options, problems);
}

}  // namespace dstrain::config
