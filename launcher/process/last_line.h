#pragma once
#include <string>
#include <string_view>

namespace dstrain::launcher {

/// The last line of `text` with something in it, without control characters.
inline std::string last_line(std::string_view text) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  if (end == text.npos) return "";
  const std::size_t before = text.find_last_of("\r\n", end);
  std::string line(text.substr(before + 1, end - before));
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  }
  return line;
}

}  // namespace dstrain::launcher
