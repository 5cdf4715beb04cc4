#pragma once
#include <string>
#include <string_view>

namespace dstrain::tokenizer {

/// Translates a regular expression of tokenizer.json to PCRE2. It is written for Oniguruma with
/// Ruby's syntax, which mostly agrees. Differences are spelled out (`\s`, `\w`, `^`, `$`) or
/// refused: set operations, named groups, back references, scripts, rarer escapes. Throws
/// Error{input}, which begins with `place`.
std::string pcre2_pattern(std::string_view pattern, const std::string& place);

}  // namespace dstrain::tokenizer
