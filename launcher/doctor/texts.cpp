#include "launcher/doctor/texts.h"

#include <algorithm>

#include "launcher/process/text.h"
#include "runtime/base/number.h"

namespace dstrain::launcher::doctor {
namespace {

constexpr std::string_view blanks = " \t\r\n\v\f";

/// The text after the colon if the line begins with `key`.
std::optional<std::string_view> value_of(std::string_view line, std::string_view key) {
  const std::size_t colon = line.find(':');
  if (colon == line.npos || trim(line.substr(0, colon)) != key) return std::nullopt;
  return trim(line.substr(colon + 1));
}

}  // namespace

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = text.find_first_not_of(blanks); at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(blanks, at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = text.find_first_not_of(blanks, end);
  }
  return words;
}

std::vector<std::string> lines_of(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  return text.empty() ? std::vector<std::string>() : split(text, '\n');
}

std::string first_line_of(std::string_view text) {
  return std::string(trim(text.substr(0, text.find('\n'))));
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Processor processor_of(std::string_view cpuinfo) {
  Processor processor;
  for (const std::string& line : lines_of(cpuinfo)) {
    if (line.empty() && !processor.flags.empty()) break;
    if (const auto model = value_of(line, "model name")) processor.model = *model;
    if (const auto vendor = value_of(line, "vendor_id")) processor.vendor = *vendor;
    if (const auto flags = value_of(line, "flags")) {
      const std::vector<std::string> words = words_of(*flags);
      processor.flags.insert(words.begin(), words.end());
    }
  }
  return processor;
}

std::string chosen(std::string_view choices) {
  const std::size_t open = choices.find('[');
  const std::size_t close = choices.find(']', open);
  if (open == choices.npos || close == choices.npos) return "";
  return std::string(choices.substr(open + 1, close - open - 1));
}

bool is_loopback_digits(std::string_view address) {
  return address.starts_with("127.") || address == "::1";
}

}  // namespace dstrain::launcher::doctor
