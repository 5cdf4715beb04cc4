#pragma once
#include <cstddef>
#include <optional>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

/// JSON values in a text that holds many, or prose too.
namespace dstrain::data {

/// The size of the object or array that `text` begins with; 0: it is not whole, or nested deeply.
std::size_t value_size(std::string_view text);

/// The JSON value of a text; none: it is not JSON.
std::optional<nlohmann::json> parse_value(std::string_view text);

/// The object or array that `text` begins with; none: it is not whole, or not JSON.
std::optional<nlohmann::json> first_value(std::string_view text);

/// `text` behind blanks, and the commas between the elements of an array.
std::string_view next_value(std::string_view text);

/// What stands behind the object that a text begins with, without blanks around it; empty: nothing,
/// or the object is not whole.
std::string_view behind_value(std::string_view text);

/// Whether what follows the first record of a text are records too, so that it is no prose that
/// begins with one: values without words between them, or most lines begin as a record does.
bool goes_on_with_records(std::string_view text);

/// Whether the value under a key is a string, or a list that is not empty.
bool has_text(const nlohmann::json& record, std::string_view key);
bool has_list(const nlohmann::json& record, std::string_view key);

}  // namespace dstrain::data
