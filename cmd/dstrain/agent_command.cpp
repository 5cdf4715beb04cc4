#include <cstdlib>

#include <unistd.h>

#include "cmd/dstrain/commands.h"
#include "launcher/agent.h"
#include "launcher/guardian.h"
#include "runtime/base/error.h"
#include "runtime/base/worker_env.h"

namespace dstrain::cmd {

int agent_command(std::span<const std::string> arguments) {
  if (!arguments.empty() || isatty(STDIN_FILENO) != 0) {
    fail(ErrorCode::usage, "dstrain agent is started by the launcher, without arguments");
  }
  const auto run = [] {
    return launcher::run_agent(DSTRAIN_VERSION);
  };
  // A launcher that started us by itself, and says so, also ends what we would leave behind.
  return std::getenv(env::job) != nullptr ? run() : launcher::guard(run);
}

}  // namespace dstrain::cmd
