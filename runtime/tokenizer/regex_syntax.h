#pragma once
#include <string>
#include <string_view>

namespace dstrain::tokenizer {

/// Rewrites a regular expression of tokenizer.json, which is meant for Oniguruma with Ruby's
/// syntax, for PCRE2. Both read most of it alike; what they do not is spelled out (`\s`, `\w`, `^`,
/// `$`) or refused: set operations, named groups, back references, scripts, rarer escapes. Throws
/// Error{input}, which begins with `place`.
std::string pcre2_pattern(std::string_view pattern, const std::string& place);

}  // namespace dstrain::tokenizer
