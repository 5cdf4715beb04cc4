#pragma once
#include <utility>

#include <nlohmann/json.hpp>

#include "runtime/data/jinja/template.h"

namespace dstrain::test {

inline jinja::Value jinja_value(const nlohmann::ordered_json& from) {
  if (from.is_null()) return jinja::None{};
  if (from.is_boolean()) return from.get<bool>();
  if (from.is_number_float()) return from.get<double>();
  if (from.is_number()) return from.get<std::int64_t>();
  if (from.is_string()) return jinja::Text{from.get<std::string>()};
  if (from.is_array()) {
    jinja::List list;
    for (const auto& item : from) list.items.push_back(jinja_value(item));
    return list;
  }
  jinja::Dict dict;
  for (const auto& [key, value] : from.items()) {
    dict.entries.emplace_back(jinja::Text{key}, jinja_value(value));
  }
  return dict;
}

/// The members of an object as the variables of a template.
inline jinja::Template::Variables jinja_variables(const nlohmann::ordered_json& object) {
  jinja::Template::Variables variables;
  for (const auto& [name, value] : object.items()) variables.emplace_back(name, jinja_value(value));
  return variables;
}

}  // namespace dstrain::test
