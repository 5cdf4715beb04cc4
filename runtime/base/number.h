#pragma once
#include <charconv>
#include <optional>
#include <string_view>

namespace dstrain {

/// Parses all of `text` as a number; none if there is anything else, such as blanks, or if it does
/// not fit.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T number{};
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return number;
}

}  // namespace dstrain
