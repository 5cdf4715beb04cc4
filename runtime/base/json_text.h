#pragma once
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace dstrain {

/// Parses a JSON object strictly: no key twice in one object, nesting of at most 32. `file` is for
/// messages. Throws Error{input} naming the file and the place.
nlohmann::json parse_json_object(std::string_view text, const std::string& file);

}  // namespace dstrain
