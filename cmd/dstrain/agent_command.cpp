#include <unistd.h>

#include "cmd/dstrain/commands.h"
#include "launcher/agent/agent.h"
#include "launcher/agent/connect.h"
#include "launcher/agent/take_stacks.h"
#include "launcher/protocol/protocol.h"
#include "runtime/base/error.h"
#include "runtime/rank/starter.h"

namespace dstrain::cmd {

int agent_command(std::span<const std::string> arguments) {
  if (arguments.size() == 2 && arguments[0] == launcher::connecting_agent) {
    launcher::connect_to_launcher(arguments[1]);
    return launcher::run_guarded_agent(DSTRAIN_VERSION);
  }
  if (!arguments.empty() && arguments[0] == launcher::stacks_argument) {
    return launcher::take_stacks(arguments.subspan(1));
  }
  const bool watched = arguments.size() == 1 && arguments[0] == launcher::watched_agent;
  if ((!arguments.empty() && !watched) || isatty(STDIN_FILENO) != 0) {
    fail(ErrorCode::usage, "dstrain agent: only the launcher starts this, without arguments");
  }
  forget_started_task();  // srun may have started the launcher, once per node
  return watched ? launcher::run_agent(DSTRAIN_VERSION)
                 : launcher::run_guarded_agent(DSTRAIN_VERSION);
}

}  // namespace dstrain::cmd
