#include "launcher/hosts/remote_link.h"

#include "launcher/hosts/process_link.h"
#include "launcher/hosts/ssh/ssh_link.h"
#include "launcher/process/program_path.h"
#include "launcher/process/text.h"
#include "runtime/base/error.h"
#include "runtime/os/plug_in.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::launcher {
namespace {

/// `WORDS... HOST REMOTE_COMMAND`: a client that runs commands on hosts as ssh does. Throws
/// Error{remote} when the program is not there.
std::unique_ptr<AgentLink> start_client(const std::vector<std::string>& words,
                                        const std::string& host,
                                        const std::string& job_id,
                                        const sigset_t& signal_mask) {
  std::vector<std::string> argv = words;
  argv.push_back(host);
  argv.push_back(remote_command(own_path()));
  // The SSH connection of this process is not the agent's.
  return std::make_unique<ProcessLink>(
      ProcessLink::Settings{.program = program_path(words.front()),
                            .argv = std::move(argv),
                            .env = {{env::job, job_id}, {"SSH_CONNECTION", ""}},
                            .keep_notes = true,
                            .ignores_stops = true,
                            .signal_mask = signal_mask});
}

}  // namespace

OpenRemote choose_remote_link(const LaunchOptions& options, const RemoteSettings& settings) {
  if (!options.ssh_command.empty()) {
    return [words = options.ssh_command, job_id = settings.job_id](const std::string& host,
                                                                   const sigset_t& mask) {
      return start_client(words, host, job_id, mask);
    };
  }
  SshTarget target;
  target.port = options.ssh_port.value_or(0);
  target.config_file = options.ssh_config;
  target.accept_new_host_keys = options.accept_new_host_keys;
  target.connect_timeout_seconds = settings.connect_timeout_seconds;
  if (options.copy_binary) {
    target.programs = std::make_shared<const BinaryBundle>(read_bundle(
        std::filesystem::path(own_path()).parent_path(), library_folder(), settings.version));
  } else {
    target.remote_command = remote_command(own_path());
  }
  return [target](const std::string& host, const sigset_t& /*mask*/) {
    SshTarget one = target;
    one.host = host;
    return connect_ssh_agent(one);
  };
}

std::string remote_command(std::string_view path) {
  // In some shells a line end ends a command even within quotes.
  const bool plain = path.find_first_of("\r\n") == path.npos;
  if (!plain || !path.starts_with('/')) {
    fail(ErrorCode::remote,
         "the path of dstrain, \"{}\", cannot be passed to every remote shell; move the program to "
         "a path without a line end",
         path);
  }
  const std::string script =
      "if [ -x \"$0\" ]; then exec \"$0\" agent; fi; "
      "if command -v dstrain >/dev/null 2>&1; then exec dstrain agent; fi; echo " +
      std::string(absent_line);
  return shell_command(script, {std::string(path)});
}

}  // namespace dstrain::launcher
