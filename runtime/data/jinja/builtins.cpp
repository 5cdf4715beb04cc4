#include "runtime/data/jinja/builtins.h"

#include <algorithm>

namespace dstrain::jinja {

Parameters::Parameters(std::string_view function,
                       const Arguments& arguments,
                       std::initializer_list<std::string_view> names)
    : function_(function), bound_(names.size(), nullptr) {
  if (arguments.positional.size() > names.size()) {
    refuse(function_, "() takes at most ", std::to_string(names.size()), " arguments, got ",
           std::to_string(arguments.positional.size()));
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    bound_[i] = &arguments.positional[i];
  }
  for (const auto& [name, value] : arguments.named) {
    const auto* const at = std::ranges::find(names, name);
    if (at == names.end()) refuse(function_, "() has no argument '", name, "'");
    bound_.at(static_cast<std::size_t>(at - names.begin())) = &value;
  }
}

const Value& Parameters::required(std::size_t parameter) const {
  if (bound_.at(parameter) == nullptr) refuse(function_, "() lacks an argument");
  return *bound_.at(parameter);
}

std::int64_t Parameters::whole(std::size_t parameter, std::int64_t other) const {
  std::int64_t value = other;
  const Value* const bound = bound_.at(parameter);
  if (bound != nullptr && !bound->as_whole(value)) {
    refuse(function_, "(): an argument is '", bound->type_name(), "', not an integer");
  }
  return value;
}

bool Parameters::truth(std::size_t parameter, bool other) const {
  return bound_.at(parameter) == nullptr ? other : bound_.at(parameter)->truth();
}

Text Parameters::text(std::size_t parameter, std::string_view other) const {
  if (bound_.at(parameter) == nullptr) return {std::string(other)};
  return required_text(parameter);
}

Text Parameters::required_text(std::size_t parameter) const {
  const Value& value = required(parameter);
  if (value.text() == nullptr) {
    if (const auto* const missing = std::get_if<Undefined>(&value.form())) {
      refuse(*missing->reason);
    }
    refuse(function_, "(): an argument is '", value.type_name(), "', not a string");
  }
  return *value.text();
}

}  // namespace dstrain::jinja
