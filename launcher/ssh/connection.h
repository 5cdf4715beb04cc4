#pragma once
#include <memory>
#include <string>

#include "launcher/ssh/patience.h"
#include "launcher/ssh/proxy_process.h"
#include "launcher/ssh/ssh_route.h"

namespace dstrain::launcher {

/// A host that is connected, has proved who it is, and has let us in. For one thread at a time.
struct SshConnection {
  std::unique_ptr<ProxyProcess> proxy;
  SshRoute route;
};

/// Throws Error{remote} or Error{timeout} with what is wrong and what to do.
SshConnection connect_ssh(const SshTarget& target, const Patience& patience);

/// A channel of the connection, which owns it, on which `command` runs.
ssh_channel run_remotely(const SshConnection& connection,
                         const std::string& command,
                         const Patience& patience);

}  // namespace dstrain::launcher
