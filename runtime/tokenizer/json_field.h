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

/// A value of a JSON file. It knows its position, so that errors name the file and the place. Must
/// not outlive its document. All members throw Error{input}.
class JsonField {
 public:
  JsonField(const nlohmann::json& value, std::string place)
      : value_(&value), place_(std::move(place)) {}

  [[nodiscard]] const nlohmann::json& value() const { return *value_; }
  /// For example "FILE: model.merges[3]".
  [[nodiscard]] const std::string& place() const { return place_; }

  /// Returns a required member of an object.
  [[nodiscard]] JsonField member(std::string_view name) const;
  /// Returns a member; nothing if it is missing or null.
  [[nodiscard]] std::optional<JsonField> find(std::string_view name) const;
  [[nodiscard]] JsonField element(std::size_t index) const;
  /// Returns the number of elements of an array.
  [[nodiscard]] std::size_t size() const;
  /// Calls `visit` for each element of an array.
  void for_each(const std::function<void(const JsonField&)>& visit) const;

  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] bool flag() const;
  /// Returns a whole number from 0 to 2^31 - 1.
  [[nodiscard]] std::int32_t number() const;
  /// Returns the only character of a text.
  [[nodiscard]] char32_t character() const;
  /// Return a member, or `otherwise` if it is missing or null.
  [[nodiscard]] std::string text_or(std::string_view name, std::string_view otherwise) const;
  [[nodiscard]] bool flag_or(std::string_view name, bool otherwise) const;

  /// Throws an error about this value.
  [[noreturn]] void refuse(std::string_view reason) const;

 private:
  const nlohmann::json* value_;
  std::string place_;
};

}  // namespace dstrain::tokenizer
