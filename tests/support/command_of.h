#pragma once
#include <string>

#include "runtime/base/shell_word.h"

namespace dstrain::test {

/// Returns the command that a message ends with, as a user copies it: the rest of its line. Empty:
/// there is none.
inline std::string command_of(const std::string& message) {
  const std::size_t at = message.find(before_command);
  if (at == message.npos) return {};
  const std::string rest = message.substr(at + before_command.size());
  return rest.substr(0, rest.find('\n'));
}

}  // namespace dstrain::test
