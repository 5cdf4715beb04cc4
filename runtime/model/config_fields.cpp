#include "runtime/model/config_fields.h"

#include <algorithm>
#include <charconv>

#include "runtime/base/error.h"
#include "runtime/model/model_family.h"

namespace dstrain::model {
namespace {

using Access = ConfigAccess::Kind;

/// Whether all of `text` is one number of this type.
template <class Number>
bool parse_number(std::string_view text, Number& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && !text.empty();
}

template <class Number>
void set_number(ModelConfig& config,
                const ConfigField& field,
                std::string_view value,
                const std::string& refusal) {
  Number number{};
  if (!parse_number(value, number)) fail(ErrorCode::usage, "{}", refusal);
  field.access.set(config, number);
}

std::string range_problem(const ModelConfig& config, const ConfigField& field) {
  const ConfigValue value = field.access.get(config);
  if (const auto* const size = std::get_if<std::int64_t>(&value);
      size != nullptr && field.access.kind == Access::size) {
    if (*size >= field.min && *size <= field.max) return {};
    return fmt::format("{} must be {}..{}, got {}", field.name, field.min, field.max, *size);
  }
  if (const auto* const rate = std::get_if<float>(&value)) {
    if (*rate >= 0 && *rate < static_cast<float>(field.max)) return {};  // false for NaN
    return fmt::format("{} must be in [0, {}), got {}", field.name, field.max, *rate);
  }
  return {};
}

}  // namespace

std::vector<std::string_view> field_names(std::span<const ConfigField> fields) {
  std::vector<std::string_view> names;
  for (const ConfigField& field : fields) {
    if (field.access.kind != Access::text) names.push_back(field.name);
  }
  return names;
}

std::string text_of(const ConfigField& field, const ConfigValue& value) {
  if (field.access.kind != Access::choice) {
    return std::visit([](const auto& one) { return fmt::format("{}", one); }, value);
  }
  const auto index = std::get<std::int64_t>(value);
  const auto found = std::ranges::find(field.choices, index, &ChoiceName::value);
  DSTRAIN_CHECK(found != field.choices.end(), "{} has no choice {}", field.name, index);
  return std::string(found->name);
}

std::string quoted_list(std::span<const std::string_view> names) {
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string_view joint = i == 0 ? "" : i + 1 < names.size() ? ", " : " and ";
    list += fmt::format("{}\"{}\"", joint, names[i]);
  }
  return list;
}

std::string choice_list(const ConfigField& field) {
  std::vector<std::string_view> names;
  for (const ChoiceName& choice : field.choices) names.push_back(choice.name);
  return quoted_list(names);
}

std::int64_t choice_named(const ConfigField& field, std::string_view name) {
  const auto found = std::ranges::find(field.choices, name, &ChoiceName::name);
  return found == field.choices.end() ? -1 : found->value;
}

void set_from_text(ModelConfig& config,
                   const ConfigField& field,
                   std::string_view value,
                   std::string_view item) {
  const auto refusal = [&](std::string_view needs) {
    return fmt::format("config override '{}': {} needs {}", item, field.name, needs);
  };
  switch (field.access.kind) {
    case Access::size:
      return set_number<std::int64_t>(config, field, value, refusal("a whole number"));
    case Access::rate:
      return set_number<float>(config, field, value, refusal("a number"));
    case Access::flag:
      if (value != "true" && value != "false") {
        fail(ErrorCode::usage, "{}", refusal("true or false"));
      }
      return field.access.set(config, value == "true");
    case Access::choice: {
      const std::int64_t choice = choice_named(field, value);
      if (choice < 0) {
        fail(ErrorCode::usage, "{}", refusal("one of " + choice_list(field)));
      }
      return field.access.set(config, choice);
    }
    case Access::text:
      DSTRAIN_CHECK(false, "{} cannot be overridden", field.name);
  }
}

bool is_derived(const ModelConfig& config, const ConfigField& field) {
  return field.derived != nullptr && field.access.get(config) == field.derived(config);
}

double shortest_decimal(float value) {
  const std::string text = fmt::format("{}", value);
  double read = 0;
  DSTRAIN_CHECK(parse_number(text, read), "{} is no number", text);
  return read;
}

std::vector<std::string> range_problems(const ModelConfig& config) {
  std::vector<std::string> problems;
  for (const ConfigField& field : config.family().fields) {
    std::string problem = range_problem(config, field);
    if (!problem.empty()) problems.push_back(std::move(problem));
  }
  return problems;
}

}  // namespace dstrain::model
