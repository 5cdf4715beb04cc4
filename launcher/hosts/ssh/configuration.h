#pragma once
#include <string>

#include "launcher/hosts/ssh/ssh_handles.h"

namespace dstrain::launcher {

inline constexpr const char* client_remedy = "use your ssh client: --ssh_command ssh";

/// A session with what ssh_config says about a host.
struct Configuration {
  SharedSession session;
  std::string host;     ///< HostName, or the name itself
  std::string ignored;  ///< options that would matter and that libssh does not know
};

/// Reads `file`, or else the user's configuration and the system's, about `name`. Throws
/// Error{remote} for one that cannot be read.
Configuration read_configuration(const std::string& name, const std::string& file);

struct Account {
  std::string name;
  std::string home;  ///< $HOME, where that is set
};
Account own_account();

/// Throws Error{remote} when libssh does not take the value.
void set_option(ssh_session session, ssh_options_e option, const void* value);

}  // namespace dstrain::launcher
