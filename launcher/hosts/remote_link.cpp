#include "launcher/hosts/remote_link.h"

#include "launcher/hosts/process_link.h"
#include "launcher/hosts/remote_command.h"
#include "launcher/hosts/ssh/ssh_link.h"
#include "launcher/process/program_path.h"

namespace dstrain::launcher {

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
    target.programs =
        std::make_shared<const BinaryBundle>(read_bundle(own_path(), settings.version));
  } else {
    target.remote_command = remote_command(own_path());
  }
  return [target](const std::string& host, const sigset_t& /*mask*/) {
    SshTarget one = target;
    one.host = host;
    return connect_ssh_agent(one);
  };
}

}  // namespace dstrain::launcher
