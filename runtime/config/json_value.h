#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/problems.h"

namespace dstrain::config {

struct JsonMember;

/// A JSON value that knows its position.
struct JsonValue {
  enum class Kind { null, boolean, number, string, array, object };
  Kind kind = Kind::null;
  Position position;
  bool boolean = false;
  double number = 0;
  std::optional<std::int64_t> integer;  ///< if the number is whole: 500000000 and 5e8 are
  std::string text;                     ///< a string's characters, or a number as it was written
  std::vector<JsonValue> elements;      ///< of an array
  std::vector<JsonMember> members;      ///< of an object, in the order of the file

  [[nodiscard]] bool is(Kind wanted) const { return kind == wanted; }
  [[nodiscard]] bool is_text(std::string_view wanted) const {
    return kind == Kind::string && text == wanted;
  }
};

struct JsonMember {
  std::string key;
  Position position;
  JsonValue value;
};

/// Returns the positions of a value and of all keys and values in it, in the order of the file.
std::vector<Position*> positions_of(JsonValue& value);

/// Formats a value for a message: 5e8, "cpu", true, null, [...], {...}.
std::string to_text(const JsonValue& value);

}  // namespace dstrain::config
