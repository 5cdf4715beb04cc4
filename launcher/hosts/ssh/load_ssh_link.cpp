#include <cstdlib>

#include "launcher/hosts/ssh/ssh_link.h"
#include "runtime/base/error.h"
#include "runtime/os/plug_in.h"

namespace dstrain::launcher {

/// Opens the plug-in only to reach another host: loading libssh and its libraries takes longer than
/// everything else in a launch on one machine.
std::unique_ptr<AgentLink> connect_ssh_agent(const SshTarget& target) {
  constexpr PlugIn plug_in{.file = "libdstrain_ssh.so"};
  const Result<void*> opened = open_plug_in(plug_in);
  if (!opened.ok()) {
    fail(ErrorCode::config,
         "cannot load {}, which SSH needs: {}; install libssh-4 here (and libssh-dev to build it), "
         "or use your ssh client: --ssh_command ssh",
         plug_in.file, opened.error());
  }
  // libssh 0.11 and newer themselves connect to a ProxyJump, and then handle host keys and errors
  // of the jump host. This variable makes them turn it into a ProxyCommand, as older ones do. Set
  // once, before the threads of connections start.
  [[maybe_unused]] static const int set = ::setenv("OPENSSH_PROXYJUMP", "1", 1);
  void* const symbol = plug_in_symbol(plug_in, opened.value(), make_ssh_link_symbol);
  return std::unique_ptr<AgentLink>(reinterpret_cast<MakeSshLink*>(symbol)(&target));
}

}  // namespace dstrain::launcher
