#include "launcher/remote_link.h"

#include "launcher/process_link.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {

OpenRemote choose_remote_link(const LaunchOptions& options, const std::string& job_id) {
  if (options.ssh_command.empty()) {
    fail(ErrorCode::usage,
         "other hosts are reached through a client program so far; name it, for example "
         "--ssh_command \"ssh -o BatchMode=yes\"");
  }
  return [words = options.ssh_command, job_id](const std::string& host, const sigset_t& mask) {
    return start_client(words, host, job_id, mask);
  };
}

}  // namespace dstrain::launcher
