#pragma once
#include <charconv>
#include <optional>
#include <string_view>

namespace dstrain {

/// The number that the whole of `text` is; none when anything else stands there, blanks included,
/// or when it does not fit.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T number{};
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return number;
}

}  // namespace dstrain
