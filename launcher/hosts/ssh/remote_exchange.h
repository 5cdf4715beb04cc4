#pragma once
#include <string>
#include <string_view>

#include "launcher/hosts/ssh/connection.h"

namespace dstrain::launcher {

/// Runs a command, sends it `input` and its end, and returns what it prints to stdout. Throws
/// Error{remote} when it fails, with the last line of its stderr, and when nothing moves for as
/// long as connecting may take.
std::string exchange(const SshConnection& connection,
                     const std::string& command,
                     std::string_view input,
                     const ConnectTimeout& timeout);

}  // namespace dstrain::launcher
