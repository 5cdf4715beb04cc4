#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "runtime/config/resolver.h"

namespace dstrain::config {

/// Without an optimizer section the options decide, with their defaults; with one DeepSpeed's
/// defaults stand behind it.
void Resolver::resolve_optimizer() {
  AdamSettings& adam = result_.settings.optimizer;
  const bool section = config_.has("optimizer");
  const AdamSettings deepspeed;
  const std::string in = "optimizer.params.";
  const std::string type = config_.text_of("optimizer.type").value_or("AdamW");
  decided_json("optimizer.type", fmt::format("\"{}\"", type), section ? "file" : "default");

  const bool by_mode = config_.boolean(in + "adam_w_mode").value_or(true);
  adam.decoupled_decay = by_mode || type == "AdamW";
  if (adam.decoupled_decay != by_mode) {
    problems_.warn(config_.position(in + "adam_w_mode"), in + "adam_w_mode",
                   "has no effect: type AdamW always decouples the weight decay");
  }
  const bool torch = config_.boolean(in + "torch_adam").value_or(false);
  constexpr double torch_adamw_decay = 0.01;  // the default of torch.optim.AdamW alone
  const double decay = torch && adam.decoupled_decay ? torch_adamw_decay : deepspeed.weight_decay;

  adam.learning_rate = pick(in + "lr", options_.learning_rate,
                            section ? deepspeed.learning_rate : options_.learning_rate.value);
  resolve_betas();
  adam.epsilon = pick(in + "eps", options_.adam_epsilon, deepspeed.epsilon);
  adam.weight_decay = pick(in + "weight_decay", options_.weight_decay, decay);
  adam.bias_correction = pick(in + "bias_correction", deepspeed.bias_correction);
  decided_json(in + "adam_w_mode", adam.decoupled_decay ? "true" : "false",
               config_.has(in + "adam_w_mode") ? "file" : "default");
}

void Resolver::resolve_betas() {
  constexpr std::string_view path = "optimizer.params.betas";
  AdamSettings& adam = result_.settings.optimizer;
  adam.beta1 = options_.adam_beta1.value;
  adam.beta2 = options_.adam_beta2.value;
  std::string origin = "default";
  for (const auto* const flag : {&options_.adam_beta2, &options_.adam_beta1}) {
    if (flag->typed()) origin = "flag " + flag->typed_as;
  }
  const JsonValue* const given = config_.find(path);
  if (given != nullptr && given->is(JsonValue::Kind::array)) {
    const std::optional<double> first = given->elements.at(0).number;
    const std::optional<double> second = given->elements.at(1).number;
    check_agreement("optimizer.params.betas", first, options_.adam_beta1);
    check_agreement("optimizer.params.betas", second, options_.adam_beta2);
    adam.beta1 = *first;
    adam.beta2 = *second;
    origin = "file";
  }
  decided_json(path, fmt::format("[{}, {}]", adam.beta1, adam.beta2), origin);
}

std::int64_t Resolver::warmup_steps() {
  if (options_.warmup_steps.value > 0 || options_.warmup_ratio.value <= 0) {
    return options_.warmup_steps.value;
  }
  const std::int64_t steps = training_steps();
  const bool expected = result_.settings.train_batch_size > 0 && context_.train_samples >= 0;
  if (steps == 0 && expected && context_.world_size > 0) {
    problems_.add({}, "--warmup_ratio",
                  context_.train_samples > 0
                      ? "the data has not one whole batch; give --max_steps"
                      : "the number of all steps is not known here; give --max_steps, or use "
                        "--warmup_steps");
  }
  return static_cast<std::int64_t>(
      std::ceil(options_.warmup_ratio.value * static_cast<double>(steps)));
}

void Resolver::resolve_schedule() {
  ScheduleSettings& schedule = result_.settings.schedule;
  const Flag<std::string>& type = options_.lr_scheduler_type;
  const std::string& warmup_flag = options_.warmup_steps.value > 0 ? options_.warmup_steps.typed_as
                                                                   : options_.warmup_ratio.typed_as;
  const bool warmup = options_.warmup_steps.value > 0 || options_.warmup_ratio.value > 0;
  if (config_.is_faulty("scheduler.type")) return;
  if (config_.has("scheduler")) {
    if (type.typed() && type.value == "constant") {
      disagree("scheduler.type", config_.text_of("scheduler.type").value_or(""), type.typed_as,
               type.value);
    }
    resolve_warmup_lr();
  } else if (type.value == "constant_with_warmup") {
    schedule.kind = ScheduleSettings::Kind::constant_with_warmup;
    schedule.warmup_max_lr = result_.settings.optimizer.learning_rate;
    schedule.warmup_num_steps = warmup_steps();
    schedule.warmup_linear = true;
  } else if (warmup) {
    problems_.warn({}, warmup_flag,
                   "has no effect: the rate is constant; add --lr_scheduler_type "
                   "constant_with_warmup, or a scheduler to the configuration");
  }
}

void Resolver::resolve_warmup_lr() {
  ScheduleSettings& schedule = result_.settings.schedule;
  const std::string in = "scheduler.params.";
  const double rate = result_.settings.optimizer.learning_rate;
  schedule.kind = ScheduleSettings::Kind::warmup_lr;
  decided_json("scheduler.type", "\"WarmupLR\"", "file");
  schedule.warmup_min_lr = pick(in + "warmup_min_lr", Flag<double>{}, 0);

  const std::optional<double> highest = config_.number(in + "warmup_max_lr");
  check_agreement(in + "warmup_max_lr", highest, options_.learning_rate);
  schedule.warmup_max_lr = highest.value_or(rate);
  decided(in + "warmup_max_lr", schedule.warmup_max_lr, highest ? "file" : "derived");

  const std::optional<std::int64_t> steps = config_.integer(in + "warmup_num_steps");
  const bool by_ratio = options_.warmup_steps.value == 0 && options_.warmup_ratio.value > 0;
  const bool from_options =
      by_ratio || options_.warmup_steps.value > 0 || config_.is_auto(in + "warmup_num_steps");
  const std::int64_t in_options = from_options ? warmup_steps() : 0;
  if (steps && by_ratio && in_options > 0 && in_options != *steps) {
    disagree(in + "warmup_num_steps", fmt::format("{}", *steps), options_.warmup_ratio.typed_as,
             fmt::format("{} ({} steps)", options_.warmup_ratio.value, in_options));
  } else if (!by_ratio) {
    check_agreement(in + "warmup_num_steps", steps, options_.warmup_steps);
  }
  constexpr std::int64_t deepspeed_default = 1000;
  constexpr std::int64_t fewest = 2;  // DeepSpeed's own floor: log(1) would be 0
  const std::int64_t wanted = steps ? *steps : from_options ? in_options : deepspeed_default;
  schedule.warmup_num_steps = std::max(fewest, wanted);
  decided(in + "warmup_num_steps", schedule.warmup_num_steps,
          steps          ? "file"
          : from_options ? "derived"
                         : "default");

  const std::optional<std::string> shape = config_.text_of(in + "warmup_type");
  schedule.warmup_linear = shape == "linear";
  decided_json(in + "warmup_type", schedule.warmup_linear ? "\"linear\"" : "\"log\"",
               shape ? "file" : "default");
}

}  // namespace dstrain::config
