#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace dstrain::launcher {

/// Without blanks at its ends.
std::string_view trim(std::string_view text);

/// Splits a command line into words at blanks. Quotes of both kinds hold a word together, and a
/// backslash outside single quotes takes the next character as it is. Nothing is expanded.
Result<std::vector<std::string>> split_words(std::string_view text);

}  // namespace dstrain::launcher
