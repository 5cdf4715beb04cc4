#pragma once
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace dstrain {

/// `text` with null in place of NaN, Infinity and -Infinity outside of strings: Python's json
/// module writes them, and JSON has no such numbers. Empty when there are none.
std::string nulls_for_python_numbers(std::string_view text);

/// What `parse` makes of a JSON text. If it throws, and the text has Python's numbers, it gets the
/// text with null in their place: where nobody reads them they do no harm.
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

/// Parses a JSON object strictly: no key twice in one object, nesting of at most 32; Python's
/// numbers as above. `file` is for messages. Throws Error{input} naming the file and the place.
nlohmann::json parse_json_object(std::string_view text, const std::string& file);

}  // namespace dstrain
