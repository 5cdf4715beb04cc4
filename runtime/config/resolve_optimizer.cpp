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

}  // namespace dstrain::config
