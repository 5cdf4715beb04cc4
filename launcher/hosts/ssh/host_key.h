#pragma once
#include "launcher/hosts/ssh/ssh_route.h"

namespace dstrain::launcher {

/// Compares the key of a connected host with the user's and the system's known_hosts. Throws
/// Error{remote} with its fingerprint for a key that is not known, unless new ones are accepted
/// (then it is appended to the user's file), and always for a changed one, with the line at fault.
void check_host_key(const SshRoute& route, const SshTarget& target);

}  // namespace dstrain::launcher
