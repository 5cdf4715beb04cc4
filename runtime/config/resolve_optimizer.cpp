#include <set>

#include <fmt/format.h>

#include "runtime/config/settings_builder.h"

namespace dstrain::config {
namespace {

bool has_section(const SettingsBuilder& builder) {
  return builder.config().has("optimizer.type");
}

// Reads one parameter of a rule, for each type. Without an optimizer section, the options and their
// defaults decide; with one, the fallback is the rule's default, `value`.

void resolve(SettingsBuilder& builder, const std::string& path, double& value) {
  const TrainOptions& options = builder.options();
  if (path.ends_with(".eps")) {
    value = builder.pick(path, options.adam_epsilon, value);
  } else if (path.ends_with(".weight_decay")) {
    value = builder.pick(path, options.weight_decay, value);
  } else {
    value = builder.pick(path, value);
  }
}

void resolve(SettingsBuilder& builder, const std::string& path, bool& value) {
  value = builder.pick(path, value);
}

void resolve(SettingsBuilder& builder, const std::string& path, rules::Betas& betas) {
  const Flag<double>& first = builder.options().adam_beta1;
  const Flag<double>& second = builder.options().adam_beta2;
  const bool by_options = builder.config().is_auto(path) || !has_section(builder);
  if (by_options || first.typed()) betas.beta1 = first.value;
  if (by_options || second.typed()) betas.beta2 = second.value;
  const Flag<double>& typed = first.typed() ? first : second;
  std::string origin = typed.typed() ? "flag " + typed.typed_as : "default";
  const JsonValue* const given = builder.config().find(path);
  if (given != nullptr && given->is(JsonValue::Kind::array)) {
    const std::optional<double> own_first = given->elements.at(0).number;
    const std::optional<double> own_second = given->elements.at(1).number;
    builder.check_agreement(path, own_first, first);
    builder.check_agreement(path, own_second, second);
    betas = {*own_first, *own_second};
    origin = "file";
  }
  builder.decided_json(path, fmt::format("[{}, {}]", betas.beta1, betas.beta2), origin);
}

void resolve_parameters(SettingsBuilder& builder, rules::Settings& rule) {
  const Flag<double>& rate = builder.options().learning_rate;
  builder.settings().schedule.learning_rate =
      builder.pick("optimizer.params.lr", rate,
                   has_section(builder) ? rules::default_learning_rate(rule) : rate.value);
  rules::for_each_parameter(rule, [&](std::string_view key, auto& value) {
    resolve(builder, fmt::format("optimizer.params.{}", key), value);
  });
}

/// Warns of typed options that a rule has no parameter for, as eps for Lion.
void report_unused(SettingsBuilder& builder, const std::string& type, rules::Settings rule) {
  std::set<std::string_view> parameters;
  rules::for_each_parameter(rule, [&](std::string_view key, auto&) { parameters.insert(key); });
  const TrainOptions& options = builder.options();
  const auto report = [&](std::string_view key, const Flag<double>& flag) {
    if (!flag.typed() || parameters.contains(key)) return;
    builder.problems().warn({}, flag.typed_as,
                            fmt::format("has no effect: {} has no {}", type, key));
  };
  report("eps", options.adam_epsilon);
  report("betas", options.adam_beta1);
  report("betas", options.adam_beta2);
  report("weight_decay", options.weight_decay);
}

// Keys and options of single rules that are not parameters.

void resolve_mode(SettingsBuilder& builder, const std::string& type, rules::Adam::Settings& adam) {
  const bool by_mode = builder.config().boolean("optimizer.params.adam_w_mode").value_or(true);
  adam.decoupled_decay = by_mode || type == "AdamW";
  if (adam.decoupled_decay != by_mode) {
    builder.add_warning("optimizer.params.adam_w_mode",
                        "has no effect: type AdamW always decouples the weight decay");
  }
  const Flag<std::string>& flag = builder.options().optim;
  if (flag.typed() && !adam.decoupled_decay) {
    builder.disagree("optimizer.params.adam_w_mode", "false", flag.typed_as, flag.value);
  }
  builder.decided_json("optimizer.params.adam_w_mode", adam.decoupled_decay ? "true" : "false",
                       builder.config().has("optimizer.params.adam_w_mode") ? "file" : "default");
  const bool torch = builder.config().boolean("optimizer.params.torch_adam").value_or(false);
  constexpr double torch_adamw_decay = 0.01;  // the default of torch.optim.AdamW only
  if (torch && adam.decoupled_decay) adam.weight_decay = torch_adamw_decay;
}

void refuse_optim(SettingsBuilder& builder, const std::string& type) {
  const Flag<std::string>& flag = builder.options().optim;
  if (!flag.typed()) return;
  builder.add_problem(
      "optimizer.type",
      fmt::format("is {} here, but {} is {} {}; leave out {}", type, flag.typed_as, flag.value,
                  builder.options().places.phrase(flag.typed_as), flag.typed_as));
}

void check_coefficients(SettingsBuilder& builder, const rules::Lamb::Settings& lamb) {
  if (lamb.min_coeff <= lamb.max_coeff) return;
  const bool least = builder.config().has("optimizer.params.min_coeff");
  builder.add_problem(
      least ? "optimizer.params.min_coeff" : "optimizer.params.max_coeff",
      fmt::format("min_coeff, {}, is more than max_coeff, {}", lamb.min_coeff, lamb.max_coeff));
}

}  // namespace

void resolve_optimizer(SettingsBuilder& builder) {
  const bool section = has_section(builder);
  const std::string type = builder.config().text_of("optimizer.type").value_or("AdamW");
  builder.decided_json("optimizer.type", fmt::format("\"{}\"", type), section ? "file" : "default");
  OptimizerSettings& optimizer = builder.settings().optimizer;
  optimizer.decays_all = section;
  optimizer.rule = rules::defaults_of(type).value_or(rules::Settings{});  // refused elsewhere
  if (auto* const adam = std::get_if<rules::Adam::Settings>(&optimizer.rule)) {
    resolve_mode(builder, type, *adam);
  } else {
    refuse_optim(builder, type);
  }
  resolve_parameters(builder, optimizer.rule);
  report_unused(builder, type, optimizer.rule);
  if (const auto* const lamb = std::get_if<rules::Lamb::Settings>(&optimizer.rule)) {
    check_coefficients(builder, *lamb);
  }
}

}  // namespace dstrain::config
