#include "runtime/tokenizer/json_field.h"

#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/printable.h"
#include "runtime/base/utf8.h"

namespace dstrain::tokenizer {

JsonField JsonField::member(std::string_view name) const {
  if (!value_->is_object()) refuse("must be an object");
  const auto found = value_->find(name);
  if (found == value_->end()) refuse(fmt::format("has no '{}'", name));
  return {*found, fmt::format("{}{}{}", place_, place_.ends_with(": ") ? "" : ".", name)};
}

std::optional<JsonField> JsonField::find(std::string_view name) const {
  if (!value_->is_object()) refuse("must be an object");
  const auto found = value_->find(name);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return member(name);
}

JsonField JsonField::element(std::size_t index) const {
  if (index >= size()) refuse(fmt::format("has no element {}", index));
  return {(*value_)[index], fmt::format("{}[{}]", place_, index)};
}

std::size_t JsonField::size() const {
  if (!value_->is_array()) refuse("must be an array");
  return value_->size();
}

void JsonField::for_each(const std::function<void(const JsonField&)>& visit) const {
  for (std::size_t i = 0; i < size(); ++i) visit(element(i));
}

const std::string& JsonField::text() const {
  if (!value_->is_string()) refuse("must be a string");
  return value_->get_ref<const std::string&>();
}

bool JsonField::flag() const {
  if (!value_->is_boolean()) refuse("must be true or false");
  return value_->get<bool>();
}

std::int32_t JsonField::number() const {
  constexpr auto max = static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());
  if (!value_->is_number_unsigned() || value_->get<std::uint64_t>() > max) {
    refuse(fmt::format("must be a whole number from 0 to {}", max));
  }
  return value_->get<std::int32_t>();
}

char32_t JsonField::character() const {
  const std::string& all = text();
  if (all.empty() || first_character(all).size != all.size()) refuse("must be one character");
  return first_character(all).code;
}

std::string JsonField::text_or(std::string_view name, std::string_view otherwise) const {
  const auto found = find(name);
  return found ? found->text() : std::string(otherwise);
}

bool JsonField::flag_or(std::string_view name, bool otherwise) const {
  const auto found = find(name);
  return found ? found->flag() : otherwise;
}

void JsonField::refuse(std::string_view reason) const {
  constexpr std::size_t bytes_max = 4096;  // a path, or text that names several foreign words
  fail(ErrorCode::input, "{}{} {}", printable(place_, bytes_max),
       place_.ends_with(": ") ? "the file" : ":", printable(reason, bytes_max));
}

}  // namespace dstrain::tokenizer
