#pragma once
#include "launcher/ssh/patience.h"
#include "launcher/ssh/ssh_route.h"

namespace dstrain::launcher {

/// Logs in to a connected host with the keys of the SSH agent, then with key files; nobody is asked
/// for a password or a passphrase. Throws Error{remote} that names what was tried.
void authenticate(const SshRoute& route, const Patience& patience);

}  // namespace dstrain::launcher
