#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "runtime/config/settings_builder.h"

namespace dstrain::config {
namespace {

void resolve_betas(SettingsBuilder& builder) {
  constexpr std::string_view path = "optimizer.params.betas";
  AdamSettings& adam = builder.settings().optimizer;
  adam.beta1 = builder.options().adam_beta1.value;
  adam.beta2 = builder.options().adam_beta2.value;
  std::string origin = "default";
  for (const auto* const flag : {&builder.options().adam_beta2, &builder.options().adam_beta1}) {
    if (flag->typed()) origin = "flag " + flag->typed_as;
  }
  const JsonValue* const given = builder.config().find(path);
  if (given != nullptr && given->is(JsonValue::Kind::array)) {
    const std::optional<double> first = given->elements.at(0).number;
    const std::optional<double> second = given->elements.at(1).number;
    builder.check_agreement("optimizer.params.betas", first, builder.options().adam_beta1);
    builder.check_agreement("optimizer.params.betas", second, builder.options().adam_beta2);
    adam.beta1 = *first;
    adam.beta2 = *second;
    origin = "file";
  }
  builder.decided_json(path, fmt::format("[{}, {}]", adam.beta1, adam.beta2), origin);
}

}  // namespace

/// Without an optimizer section the options decide, with their defaults; with one DeepSpeed's
/// defaults stand behind it.
void resolve_optimizer(SettingsBuilder& builder) {
  AdamSettings& adam = builder.settings().optimizer;
  const bool section = builder.config().has("optimizer");
  const AdamSettings deepspeed;
  const std::string in = "optimizer.params.";
  const std::string type = builder.config().text_of("optimizer.type").value_or("AdamW");
  builder.decided_json("optimizer.type", fmt::format("\"{}\"", type), section ? "file" : "default");

  const bool by_mode = builder.config().boolean(in + "adam_w_mode").value_or(true);
  adam.decoupled_decay = by_mode || type == "AdamW";
  if (adam.decoupled_decay != by_mode) {
    builder.add_warning(in + "adam_w_mode",
                        "has no effect: type AdamW always decouples the weight decay");
  }
  const bool torch = builder.config().boolean(in + "torch_adam").value_or(false);
  constexpr double torch_adamw_decay = 0.01;  // the default of torch.optim.AdamW alone
  const double decay = torch && adam.decoupled_decay ? torch_adamw_decay : deepspeed.weight_decay;

  adam.learning_rate =
      builder.pick(in + "lr", builder.options().learning_rate,
                   section ? deepspeed.learning_rate : builder.options().learning_rate.value);
  resolve_betas(builder);
  adam.epsilon = builder.pick(in + "eps", builder.options().adam_epsilon, deepspeed.epsilon);
  adam.weight_decay = builder.pick(in + "weight_decay", builder.options().weight_decay, decay);
  adam.bias_correction = builder.pick(in + "bias_correction", deepspeed.bias_correction);
  builder.decided_json(in + "adam_w_mode", adam.decoupled_decay ? "true" : "false",
                       builder.config().has(in + "adam_w_mode") ? "file" : "default");
}

}  // namespace dstrain::config
