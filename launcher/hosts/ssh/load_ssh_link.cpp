#include <cstdlib>

#include "launcher/hosts/ssh/ssh_link.h"
#include "runtime/base/error.h"
#include "runtime/os/plug_in.h"

namespace dstrain::launcher {

/// The plug-in is opened when another host is to be reached: libssh and what it needs take longer
/// to load than all else that a launch on one machine does.
std::unique_ptr<AgentLink> connect_ssh_agent(const SshTarget& target) {
  constexpr PlugIn plug_in{.file = "libdstrain_ssh.so"};
  const Result<void*> opened = open_plug_in(plug_in);
  if (!opened.ok()) {
    fail(ErrorCode::config,
         "cannot load {}, which brings SSH: {}; it is built when libssh-dev is installed and needs "
         "libssh-4 here; or use your ssh client: --ssh_command ssh",
         plug_in.file, opened.error());
  }
  // libssh 0.11 and newer connect to a ProxyJump by themselves, which leaves host keys and errors
  // of the jump host to it, unless this tells them to make a ProxyCommand of it as older ones do.
  // Set once, before the threads of connections begin.
  [[maybe_unused]] static const int set = ::setenv("OPENSSH_PROXYJUMP", "1", 1);
  void* const symbol = plug_in_symbol(plug_in, opened.value(), make_ssh_link_symbol);
  return std::unique_ptr<AgentLink>(reinterpret_cast<MakeSshLink*>(symbol)(&target));
}

}  // namespace dstrain::launcher
