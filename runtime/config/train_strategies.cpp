// When a run evaluates, logs and saves, by Hugging Face's rules.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "runtime/base/printable.h"
#include "runtime/config/data_files.h"
#include "runtime/config/train_options.h"

namespace dstrain::config {
namespace {

using Lines = std::vector<std::string>;

/// Hugging Face's rule for fractions of all steps.
bool is_multiple(double a, double b) {
  constexpr double parts = 1e6;
  if (a >= 1 || b >= 1) return std::fmod(a, b) == 0;
  return std::fmod(std::round(a * parts), std::round(b * parts)) == 0;
}

void check_best_model(const TrainOptions& options, Lines& problems) {
  const std::string& flag = options.load_best_model_at_end.typed_as;
  const std::string strategy = eval_strategy(options);
  const std::string& saves = options.save_strategy.value;
  if (!options.load_best_model_at_end.value || !trains(options)) return;
  if (saves == "best") return;
  if (strategy != saves || strategy == "no") {
    problems.push_back(fmt::format(
        "{}: --eval_strategy is {} and --save_strategy is {}; both must be steps, or both epoch, "
        "or use --save_strategy best",
        flag, strategy, saves));
    return;
  }
  if (strategy == "epoch") return;
  const double every = eval_steps(options);
  const double saved = options.save_steps.value;
  if (saved == 0) {
    problems.push_back(fmt::format("{}: needs checkpoints, but --save_steps is 0", flag));
  } else if ((every < 1) != (saved < 1) || !is_multiple(saved, every)) {
    problems.push_back(
        fmt::format("{}: --save_steps {} must be a multiple of the steps between evaluations, {}",
                    flag, saved, every));
  }
}

}  // namespace

std::string what_needs_held_out(const TrainOptions& options) {
  if (options.do_eval.value) return options.do_eval.typed_as;
  if (options.eval_strategy.value != "no") return options.eval_strategy.typed_as;
  if (options.load_best_model_at_end.value) return options.load_best_model_at_end.typed_as;
  return options.save_strategy.value == "best" ? options.save_strategy.typed_as : "";
}

bool tracks_best(const TrainOptions& options) {
  return options.load_best_model_at_end.value || options.metric_for_best_model.typed() ||
         options.save_strategy.value == "best";
}

bool trains(const TrainOptions& options) {
  return options.do_train.typed() ? options.do_train.value : !options.do_eval.value;
}

std::string eval_strategy(const TrainOptions& options) {
  if (options.eval_strategy.typed()) return options.eval_strategy.value;
  return options.eval_steps.value > 0 ? "steps" : "no";
}

bool has_held_out_data(const TrainOptions& options) {
  return options.validation_file.typed() || options.split.typed() || !options.questions.empty();
}

bool evaluates(const TrainOptions& options) {
  const bool refuses = options.do_eval.typed() && !options.do_eval.value;
  return has_held_out_data(options) && (!refuses || eval_strategy(options) != "no");
}

double eval_steps(const TrainOptions& options) {
  return options.eval_steps.value > 0 ? options.eval_steps.value : options.logging_steps.value;
}

std::vector<std::string> strategy_problems(const TrainOptions& options) {
  Lines problems;
  if (options.logging_steps.typed() && options.logging_steps.value == 0) {
    problems.push_back(fmt::format(
        "{}: must not be 0; --logging_strategy no logs only the first and the last step",
        options.logging_steps.typed_as));
  }
  check_best_model(options, problems);
  if (!trains(options) && !options.do_eval.value) {
    problems.push_back(fmt::format("{} false without --do_eval: there is nothing to do",
                                   options.do_train.typed_as));
  }
  if (options.split.typed() && split_weights(options.split.value).empty()) {
    problems.push_back(
        fmt::format("{} {}: expected up to three weights, \"949,50,1\", that are not all 0",
                    options.split.typed_as, options.split.value));
  }
  const auto names = parse_role_names(options.role_names.value);
  if (!names.ok()) {
    problems.push_back(fmt::format("{}: {}", options.role_names.typed_as, names.error()));
  }
  if (options.chat_date.typed() && !parse_date(options.chat_date.value)) {
    problems.push_back(fmt::format("{} {}: expected a day as YYYY-MM-DD",
                                   options.chat_date.typed_as, printable(options.chat_date.value)));
  }
  return problems;
}

std::vector<std::string> strategy_warnings(const TrainOptions& options) {
  Lines warnings;
  const auto warn = [&](const std::string& flag, const std::string& why) {
    warnings.push_back(fmt::format("{}: has no effect: {}", flag, why));
  };
  if (!trains(options)) {
    warnings.push_back(
        fmt::format("{}: evaluates and does not train{}",
                    options.do_train.typed() ? options.do_train.typed_as + " false" : "--do_eval",
                    options.do_train.typed() ? "" : "; add --do_train to train too"));
    if (options.resume_from_checkpoint.typed() || options.load.typed()) {
      warn(options.load.typed() ? options.load.typed_as : options.resume_from_checkpoint.typed_as,
           "--model_name_or_path is evaluated; it may be a checkpoint-N");
    }
  }
  const std::string strategy = eval_strategy(options);
  if (options.eval_steps.value > 0 && strategy != "steps") {
    warn(options.eval_steps.typed_as, "--eval_strategy is " + strategy);
  }
  const std::string& logs = options.logging_strategy.value;
  if (options.logging_steps.typed() && options.logging_steps.value > 0 && logs != "steps") {
    const bool used = strategy == "steps" && options.eval_steps.value <= 0;  // evaluations use it
    if (!used) warn(options.logging_steps.typed_as, "--logging_strategy is " + logs);
  }
  const std::string& saves = options.save_strategy.value;
  if (options.save_steps.typed() && options.save_steps.value > 0 && saves != "steps") {
    warn(options.save_steps.typed_as, "--save_strategy is " + saves);
  }
  if (options.greater_is_better.typed() && !tracks_best(options)) {
    warn(options.greater_is_better.typed_as, "it needs --load_best_model_at_end");
  }
  if (options.ignore_data_skip.value && trains(options) && !resumes(options)) {
    warn(options.ignore_data_skip.typed_as, "it needs --resume_from_checkpoint");
  }
  if (options.load.typed() && options.resume_from_checkpoint.typed()) {
    warn(options.load.typed_as, "--resume_from_checkpoint decides");
  } else if (options.load.typed() && trains(options) && !resumes(options)) {
    warnings.push_back(fmt::format("{} {}: holds no checkpoint; starting a new run",
                                   options.load.typed_as, options.load.value));
  }
  return warnings;
}

void check_data_options(TrainOptions& options, std::vector<std::string>& problems) {
  if (!options.train_file.typed() && (trains(options) || options.split.typed())) {
    problems.emplace_back("--train_file FILE is required");
  }
  if (options.validation_file.typed() && options.split.typed()) {
    problems.push_back(fmt::format("{} and {} both set held-out data; give one of them",
                                   options.split.typed_as, options.validation_file.typed_as));
  }
  if (has_held_out_data(options)) return;
  const std::string asks = what_needs_held_out(options);
  const auto is_told = [](const std::string& problem) {  // reported with the --split to use
    return std::ranges::any_of(
        std::array{"--validation_split_percentage ", "--val_size ", "--val_set_size ",
                   "--split_dataset_ratio ", "--test_size "},
        [&](const char* option) { return problem.starts_with(option); });
  };
  if (!asks.empty() && std::ranges::any_of(problems, is_told)) return;
  if (!asks.empty()) {
    problems.push_back(fmt::format(
        "{}: needs --validation_file FILE, or --split 95,5,0, the shares of training, validation "
        "and test in --train_file",
        asks));
    return;
  }
  for (const std::string& flag :
       {options.eval_steps.typed_as, options.max_eval_samples.typed_as,
        options.per_device_eval_batch_size.typed_as, options.metric_for_best_model.typed_as}) {
    if (flag.empty()) continue;
    options.warnings.push_back(
        fmt::format("{}: has no effect: there is no --validation_file", flag));
  }
}

std::vector<double> split_weights(const std::string& text) {
  constexpr std::size_t most = 3;
  std::vector<double> weights;
  double sum = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    double weight = 0;
    const char* const last = text.data() + end;
    const auto [stopped, error] = std::from_chars(text.data() + begin, last, weight);
    if (error != std::errc{} || stopped != last || !std::isfinite(weight) || weight < 0) return {};
    weights.push_back(weight);
    sum += weight;
    begin = end + 1;
  }
  weights.resize(sum > 0 && std::isfinite(sum) && weights.size() <= most ? most : 0);
  return weights;
}

}  // namespace dstrain::config
