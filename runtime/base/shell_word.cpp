#include "runtime/base/shell_word.h"

#include <algorithm>

namespace dstrain {
namespace {

bool is_plain(char c) {
  constexpr std::string_view others = "_./-+,:@%=";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         others.find(c) != std::string_view::npos;
}

}  // namespace

std::string shell_quote(std::string_view text) {
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + '\'';
}

std::string shell_word(std::string_view text) {
  const bool plain = !text.empty() && std::ranges::all_of(text, is_plain);
  return plain ? std::string(text) : shell_quote(text);
}

std::string shell_path(const std::string& path) {
  return shell_word(path.starts_with('-') ? "./" + path : path);
}

std::string command_below(std::string_view command) {
  return std::string(before_command) + std::string(command);
}

}  // namespace dstrain
