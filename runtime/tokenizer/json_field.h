#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace dstrain::tokenizer {

/// A value of a JSON file that is read into settings: it knows where it stands, so that whatever is
/// wrong with it is said with the file and the place. Its document outlives it. Everything here
/// throws Error{input}.
class JsonField {
 public:
  JsonField(const nlohmann::json& value, std::string place)
      : value_(&value), place_(std::move(place)) {}

  [[nodiscard]] const nlohmann::json& value() const { return *value_; }
  /// "FILE: model.merges[3]", say.
  [[nodiscard]] const std::string& place() const { return place_; }

  /// A member of an object; it must be there.
  [[nodiscard]] JsonField member(std::string_view name) const;
  /// A member, or nothing when there is none or it is null.
  [[nodiscard]] std::optional<JsonField> find(std::string_view name) const;
  [[nodiscard]] JsonField element(std::size_t index) const;
  /// The number of elements; the value must be an array.
  [[nodiscard]] std::size_t size() const;
  /// Calls `visit` with each element of an array.
  void for_each(const std::function<void(const JsonField&)>& visit) const;

  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] bool flag() const;
  /// A whole number from 0 to 2^31 - 1.
  [[nodiscard]] std::int32_t number() const;
  /// Text that is exactly one character.
  [[nodiscard]] char32_t character() const;
  /// The text of a member, the truth of one, or what stands for a missing or null one.
  [[nodiscard]] std::string text_or(std::string_view name, std::string_view otherwise) const;
  [[nodiscard]] bool flag_or(std::string_view name, bool otherwise) const;

  /// Says what is wrong with this value.
  [[noreturn]] void refuse(std::string_view reason) const;

 private:
  const nlohmann::json* value_;
  std::string place_;
};

}  // namespace dstrain::tokenizer
