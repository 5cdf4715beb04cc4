#include "runtime/model/model_config.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "runtime/base/error.h"
#include "runtime/base/suggest.h"
#include "runtime/model/model_family.h"
#include "runtime/ops/attention.h"

namespace dstrain::model {
namespace {

using Fields = std::vector<const ConfigField*>;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

const ConfigField& field_named(const ModelFamily& family,
                               std::string_view key,
                               std::string_view item) {
  for (const ConfigField& field : family.fields) {
    if (field.access.kind == ConfigAccess::Kind::text) continue;
    if (!key.empty() && (field.name == key || field.alias == key)) return field;
  }
  const std::vector<std::string_view> names = field_names(family.fields);
  std::vector<std::string_view> known = names;
  for (const ConfigField& field : family.fields) known.push_back(field.alias);
  const std::string likely = suggest(key, known);
  fail(ErrorCode::usage, "config override '{}': unknown key; {}", item,
       likely.empty() ? fmt::format("known are {}", fmt::join(names, ", "))
                      : fmt::format("did you mean {}?", likely));
}

/// Returns the field that was set.
const ConfigField& apply_override(ModelConfig& config, std::string_view item) {
  const auto equals = item.find('=');
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view() : trimmed(item.substr(equals + 1));
  const ConfigField& field =
      field_named(config.family(), trimmed(item.substr(0, equals)), trimmed(item));
  set_from_text(config, field, value, trimmed(item));
  return field;
}

bool contains(const Fields& fields, const ConfigField& field) {
  return std::ranges::find(fields, &field) != fields.end();
}

}  // namespace

Model describe_model(const ModelConfig& config, const UnitOptions& options) {
  const DType dtype = options.dtype;
  DSTRAIN_CHECK(dtype == DType::f32 || is_half(dtype), "a model of {}", name_of(dtype));
  const auto [keys, head_size] = config.head_size();
  const std::int64_t most = ops::attention_head_size_max(options.device);
  if (head_size > most) {
    fail(ErrorCode::config,
         "the model's {} is {}: --device {} has attention for heads of up to {} "
         "features; choose smaller heads, or --device cpu",
         keys, head_size, name_of(options.device), most);
  }
  Model model;
  model.name = config.family().model_type;
  model.dtype = dtype;
  model.device = options.device;
  model.vocabulary = config.vocabulary();
  model.hidden = config.hidden();
  model.hf_names = config.hf_names();
  model.config_json = config.to_json(dtype);
  return model;
}

void ModelConfig::apply_overrides(std::string_view overrides) {
  if (trimmed(overrides).empty()) return;
  Fields following;
  for (const ConfigField& field : family().fields) {
    if (is_derived(*this, field)) following.push_back(&field);
  }
  Fields given;
  for (std::size_t begin = 0; begin <= overrides.size();) {
    const std::size_t end = std::min(overrides.find(',', begin), overrides.size());
    const ConfigField& field = apply_override(*this, overrides.substr(begin, end - begin));
    if (contains(given, field)) {
      fail(ErrorCode::usage, "config overrides '{}': {} is set twice; keep one of them", overrides,
           field.name);
    }
    given.push_back(&field);
    begin = end + 1;
  }
  const std::vector<std::string> problems = range_problems(*this);
  if (!problems.empty()) {
    fail(ErrorCode::usage, "config overrides '{}': {}", overrides, fmt::join(problems, "; "));
  }
  for (const ConfigField* field : following) {
    if (!contains(given, *field)) field->access.set(*this, field->derived(*this));
  }
}

void ModelConfig::check() const {
  std::vector<std::string> problems = range_problems(*this);
  if (problems.empty()) check_more(problems);
  if (!problems.empty()) fail(ErrorCode::usage, "model sizes: {}", fmt::join(problems, "; "));
}

std::vector<ConfigDifference> ModelConfig::differences(const ModelConfig& after) const {
  if (family_ != after.family_) {
    return {
        {"model_type", std::string(family().model_type), std::string(after.family().model_type)}};
  }
  std::vector<ConfigDifference> found;
  for (const ConfigField& field : family().fields) {
    const ConfigValue left = field.access.get(*this);
    const ConfigValue right = field.access.get(after);
    if (field.trains_only || left == right) continue;
    found.push_back({field.name, text_of(field, left), text_of(field, right)});
  }
  return found;
}

}  // namespace dstrain::model
