#pragma once
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace dstrain {

/// Returns `text` with null instead of NaN, Infinity and -Infinity outside of strings: Python's
/// json module writes them, but they are not JSON. Empty if there are none.
std::string nulls_for_python_numbers(std::string_view text);

/// Returns the result of `parse` for a JSON text. If it throws, and the text has Python's numbers,
/// parses the text with null instead, which is harmless where the values are not read.
template <class Parse>
auto parse_python_json(std::string_view text, Parse&& parse) {
  try {
    return parse(text);
  } catch (...) {
    const std::string changed = nulls_for_python_numbers(text);
    if (changed.empty()) throw;
    return parse(std::string_view(changed));
  }
}

/// Parses a JSON object strictly: no duplicate keys, nesting of at most 32; Python's numbers as
/// above. `file` is for messages. Throws Error{input} naming the file and the place.
nlohmann::json parse_json_object(std::string_view text, const std::string& file);

}  // namespace dstrain
