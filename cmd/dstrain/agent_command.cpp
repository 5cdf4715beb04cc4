#include <unistd.h>

#include "cmd/dstrain/commands.h"
#include "launcher/agent.h"
#include "runtime/base/error.h"

namespace dstrain::cmd {

int agent_command(std::span<const std::string> arguments) {
  if (!arguments.empty() || isatty(STDIN_FILENO) != 0) {
    fail(ErrorCode::usage, "dstrain agent is started by the launcher, without arguments");
  }
  return launcher::run_agent(DSTRAIN_VERSION);
}

}  // namespace dstrain::cmd
