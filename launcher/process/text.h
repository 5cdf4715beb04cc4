#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace dstrain::launcher {

/// The text without blanks at its ends.
std::string_view trim(std::string_view text);

/// The last line of `text` with something in it, without control characters.
std::string last_line(std::string_view text);

/// The first line of a small file, without its end; empty if the file cannot be read.
std::string first_line_of_file(const std::string& path);

/// Splits a command line into words at blanks. Quotes of both kinds hold a word together, and a
/// backslash outside single quotes takes the next character as it is. Nothing is expanded.
Result<std::vector<std::string>> split_words(std::string_view text);

/// The command line that has any login shell become a POSIX one, which runs `script` with `words`
/// as $0, $1 and so on. A script is one line: not every login shell takes a line end between
/// quotes.
std::string shell_command(std::string_view script, const std::vector<std::string>& words);

/// Both ends included, as they were written: the last may be the smaller one.
struct NumberRange {
  int first = 0;
  int last = 0;
};

/// The parts of "0, 2-4, -1" in their order; blanks around a number do not count. The failure is
/// the word that is not a number.
Result<std::vector<NumberRange>> parse_number_ranges(std::string_view list);

}  // namespace dstrain::launcher
