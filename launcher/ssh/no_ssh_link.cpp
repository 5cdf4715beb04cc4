#include "launcher/ssh/ssh_link.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {

std::unique_ptr<AgentLink> connect_ssh_agent(const SshTarget& target) {
  fail(ErrorCode::config,
       "{}: this build of dstrain has no libssh; install libssh-dev and build again, or use your "
       "ssh client: --ssh_command ssh",
       target.host);
}

}  // namespace dstrain::launcher
