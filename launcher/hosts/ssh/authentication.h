#pragma once
#include "launcher/hosts/ssh/connect_timeout.h"
#include "launcher/hosts/ssh/ssh_route.h"

namespace dstrain::launcher {

/// Logs in to a connected host with the keys of the SSH agent, then with key files; asks for no
/// password or passphrase. Throws Error{remote} that names what was tried.
void authenticate(const SshRoute& route, const ConnectTimeout& timeout);

}  // namespace dstrain::launcher
