#include "launcher/hosts/shell_quote.h"

namespace dstrain::launcher {

std::string shell_quote(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  out += '\'';
  return out;
}

std::string shell_command(std::string_view script, const std::vector<std::string>& words) {
  std::string command = "exec /bin/sh -c " + shell_quote(script);
  for (const std::string& word : words) command += ' ' + shell_quote(word);
  return command;
}

}  // namespace dstrain::launcher
