#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "runtime/config/settings_builder.h"

namespace dstrain::config {
namespace {

template <class Settings>
void resolve_betas(SettingsBuilder& builder, Settings& settings) {
  constexpr std::string_view path = "optimizer.params.betas";
  settings.beta1 = builder.options().adam_beta1.value;
  settings.beta2 = builder.options().adam_beta2.value;
  std::string origin = "default";
  for (const auto* const flag : {&builder.options().adam_beta2, &builder.options().adam_beta1}) {
    if (flag->typed()) origin = "flag " + flag->typed_as;
  }
  const JsonValue* const given = builder.config().find(path);
  if (given != nullptr && given->is(JsonValue::Kind::array)) {
    const std::optional<double> first = given->elements.at(0).number;
    const std::optional<double> second = given->elements.at(1).number;
    builder.check_agreement(path, first, builder.options().adam_beta1);
    builder.check_agreement(path, second, builder.options().adam_beta2);
    settings.beta1 = *first;
    settings.beta2 = *second;
    origin = "file";
  }
  builder.decided_json(path, fmt::format("[{}, {}]", settings.beta1, settings.beta2), origin);
}

/// What all rules of moments have. Without an optimizer section the options decide, with their
/// defaults; with one DeepSpeed's defaults, those of `settings`, stand behind it.
template <class Settings>
void resolve_moments(SettingsBuilder& builder, Settings& settings, double default_decay) {
  const Flag<double>& rate = builder.options().learning_rate;
  settings.learning_rate =
      builder.pick("optimizer.params.lr", rate,
                   builder.config().has("optimizer.type") ? settings.learning_rate : rate.value);
  resolve_betas(builder, settings);
  settings.epsilon =
      builder.pick("optimizer.params.eps", builder.options().adam_epsilon, settings.epsilon);
  settings.weight_decay =
      builder.pick("optimizer.params.weight_decay", builder.options().weight_decay, default_decay);
  settings.bias_correction =
      builder.pick("optimizer.params.bias_correction", settings.bias_correction);
}

AdamSettings resolve_adam(SettingsBuilder& builder, const std::string& type) {
  AdamSettings adam;
  const bool by_mode = builder.config().boolean("optimizer.params.adam_w_mode").value_or(true);
  adam.decoupled_decay = by_mode || type == "AdamW";
  if (adam.decoupled_decay != by_mode) {
    builder.add_warning("optimizer.params.adam_w_mode",
                        "has no effect: type AdamW always decouples the weight decay");
  }
  adam.decays_all = builder.config().has("optimizer.type");
  const Flag<std::string>& flag = builder.options().optim;
  if (flag.typed() && !adam.decoupled_decay) {
    builder.disagree("optimizer.params.adam_w_mode", "false", flag.typed_as, flag.value);
  }
  const bool torch = builder.config().boolean("optimizer.params.torch_adam").value_or(false);
  constexpr double torch_adamw_decay = 0.01;  // the default of torch.optim.AdamW alone
  resolve_moments(builder, adam,
                  torch && adam.decoupled_decay ? torch_adamw_decay : adam.weight_decay);
  builder.decided_json("optimizer.params.adam_w_mode", adam.decoupled_decay ? "true" : "false",
                       builder.config().has("optimizer.params.adam_w_mode") ? "file" : "default");
  return adam;
}

LambSettings resolve_lamb(SettingsBuilder& builder) {
  LambSettings lamb;
  const Flag<std::string>& flag = builder.options().optim;
  if (flag.typed()) {
    builder.add_problem("optimizer.type",
                        fmt::format("is Lamb here, but {} is {} on the command line; leave out {}",
                                    flag.typed_as, flag.value, flag.typed_as));
  }
  resolve_moments(builder, lamb, lamb.weight_decay);
  lamb.eps_inside_sqrt = builder.pick("optimizer.params.eps_inside_sqrt", lamb.eps_inside_sqrt);
  lamb.max_coeff = builder.pick("optimizer.params.max_coeff", lamb.max_coeff);
  lamb.min_coeff = builder.pick("optimizer.params.min_coeff", lamb.min_coeff);
  if (lamb.min_coeff > lamb.max_coeff) {
    const bool least = builder.config().has("optimizer.params.min_coeff");
    builder.add_problem(
        least ? "optimizer.params.min_coeff" : "optimizer.params.max_coeff",
        fmt::format("min_coeff, {}, is more than max_coeff, {}", lamb.min_coeff, lamb.max_coeff));
  }
  return lamb;
}

}  // namespace

void resolve_optimizer(SettingsBuilder& builder) {
  const bool section = builder.config().has("optimizer.type");
  const std::string type = builder.config().text_of("optimizer.type").value_or("AdamW");
  builder.decided_json("optimizer.type", fmt::format("\"{}\"", type), section ? "file" : "default");
  if (type == "Lamb") {
    builder.settings().optimizer = resolve_lamb(builder);
  } else {
    builder.settings().optimizer = resolve_adam(builder, type);
  }
}

}  // namespace dstrain::config
