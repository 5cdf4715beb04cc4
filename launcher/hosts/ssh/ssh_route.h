#pragma once
#include <memory>
#include <string>
#include <vector>

#include <libssh/callbacks.h>

#include "launcher/hosts/ssh/ssh_handles.h"
#include "launcher/hosts/ssh/ssh_link.h"

namespace dstrain::launcher {

/// A session that is not connected yet, and what the configuration says about its host.
struct SshRoute {
  SharedSession session;
  std::shared_ptr<ssh_callbacks_struct> callbacks;  ///< the session's, which never lets them go
  std::string host;                                 ///< HostName, or the name itself
  int port = 22;
  std::string user;
  std::vector<std::string> proxy;  ///< a command to reach it through; empty: directly
  std::string ignored;             ///< options of the configuration that libssh does not know
};

/// Reads the configuration. Throws Error{remote} for one that cannot be read or used.
SshRoute plan_route(const SshTarget& target);

}  // namespace dstrain::launcher
