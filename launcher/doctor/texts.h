#pragma once
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/units.h"

/// Parsers of small texts in which a machine describes itself.
namespace dstrain::launcher::doctor {

/// The words of a text, at blanks and line ends.
std::vector<std::string> words_of(std::string_view text);

/// The lines of a text, without their ends.
std::vector<std::string> lines_of(std::string_view text);

/// The first line of a text, without blanks at its ends.
std::string first_line_of(std::string_view text);

/// The parts of a text between separators, empty ones included.
std::vector<std::string> split(std::string_view text, char separator);

/// The first processor of /proc/cpuinfo.
struct Processor {
  std::string model = "unknown processor";
  std::string vendor;
  std::set<std::string> flags;
};
Processor processor_of(std::string_view cpuinfo);

/// The choice in brackets of "always [madvise] never"; empty when there is none.
std::string chosen(std::string_view choices);

/// "127.0.0.1", "127.0.1.1", "::1".
bool is_loopback_digits(std::string_view address);

}  // namespace dstrain::launcher::doctor
