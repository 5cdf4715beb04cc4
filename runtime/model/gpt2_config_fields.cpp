#include "runtime/model/gpt2_config_fields.h"

#include <fmt/format.h>

namespace dstrain::model {

std::string field_names() {
  std::vector<std::string_view> names;
  names.reserve(size_fields.size() + rate_fields.size());
  for (const SizeField& field : size_fields) names.push_back(field.name);
  for (const RateField& field : rate_fields) names.push_back(field.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<std::string> range_problems(const Gpt2Config& config) {
  std::vector<std::string> problems;
  for (const SizeField& field : size_fields) {
    const std::int64_t value = config.*field.member;
    if (value < 1 || value > field.max) {
      problems.push_back(fmt::format("{} must be 1..{}, got {}", field.name, field.max, value));
    }
  }
  for (const RateField& field : rate_fields) {
    const float value = config.*field.member;
    if (!(value >= 0 && value < field.max)) {  // NaN too
      problems.push_back(
          fmt::format("{} must be in [0, {}), got {}", field.name, field.max, value));
    }
  }
  return problems;
}

}  // namespace dstrain::model
