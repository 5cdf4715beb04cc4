#pragma once
#include <memory>
#include <string>

#include "launcher/hosts/ssh/connect_timeout.h"
#include "launcher/hosts/ssh/proxy_process.h"
#include "launcher/hosts/ssh/ssh_route.h"

namespace dstrain::launcher {

/// An authenticated connection to a host whose key was checked. For one thread at a time.
struct SshConnection {
  std::unique_ptr<ProxyProcess> proxy;
  SshRoute route;
};

/// Throws Error{remote} or Error{timeout} with what is wrong and what to do.
SshConnection connect_ssh(const SshTarget& target, const ConnectTimeout& timeout);

/// A channel of the connection, which owns it, for one command. Set callbacks of the channel before
/// the command starts, so that they miss nothing.
ssh_channel open_channel(const SshConnection& connection, const ConnectTimeout& timeout);
void start_command(const SshConnection& connection,
                   ssh_channel channel,
                   const std::string& command,
                   const ConnectTimeout& timeout);

}  // namespace dstrain::launcher
