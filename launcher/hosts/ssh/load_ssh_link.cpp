#include <filesystem>

#include <dlfcn.h>

#include "launcher/hosts/ssh/ssh_link.h"
#include "launcher/process/program_path.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

constexpr const char* plugin_name = "libdstrain_ssh.so";

/// Opened when another host is to be reached: libssh and what it needs take longer to load than all
/// else that a launch on one machine does.
void* open_plugin() {
  const std::string beside = std::filesystem::path(own_path()).parent_path() / plugin_name;
  std::string reason;
  for (const std::string& path : {beside, std::string(plugin_name)}) {
    if (void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    reason = dlerror();
  }
  fail(ErrorCode::config,
       "cannot load {}, which brings SSH: {}; it is built when libssh-dev is installed and needs "
       "libssh-4 here; or use your ssh client: --ssh_command ssh",
       plugin_name, reason);
}

}  // namespace

std::unique_ptr<AgentLink> connect_ssh_agent(const SshTarget& target) {
  void* const symbol = dlsym(open_plugin(), make_ssh_link_symbol);
  if (symbol == nullptr) {
    fail(ErrorCode::config, "{} is of another version than dstrain: it lacks {}", plugin_name,
         make_ssh_link_symbol);
  }
  return std::unique_ptr<AgentLink>(reinterpret_cast<MakeSshLink*>(symbol)(&target));
}

}  // namespace dstrain::launcher
