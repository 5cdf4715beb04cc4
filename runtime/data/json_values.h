#pragma once
#include <cstddef>
#include <optional>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

/// Finds JSON values in a text that holds many, or also prose.
namespace dstrain::data {

/// Returns the size of the object or array that `text` begins with; 0: it is incomplete, or nested
/// deeply.
std::size_t value_size(std::string_view text);

/// Returns the JSON value of a text; none: it is not JSON.
std::optional<nlohmann::json> parse_value(std::string_view text);

/// Returns the object or array that `text` begins with; none: it is incomplete, or not JSON.
std::optional<nlohmann::json> first_value(std::string_view text);

/// Returns `text` after blanks, and after the commas between the elements of an array.
std::string_view next_value(std::string_view text);

/// Returns the text after the object that `text` begins with, without blanks around it; empty:
/// there is none, or the object is incomplete.
std::string_view behind_value(std::string_view text);

/// Whether records follow the first record of a text, so that it is not prose that begins with one:
/// values without words between them, or most lines begin like a record.
bool goes_on_with_records(std::string_view text);

/// Whether the value under a key is a string, or a list that is not empty.
bool has_text(const nlohmann::json& record, std::string_view key);
bool has_list(const nlohmann::json& record, std::string_view key);

}  // namespace dstrain::data
