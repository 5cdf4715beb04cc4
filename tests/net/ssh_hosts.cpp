#include "tests/net/ssh_hosts.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

namespace dstrain::test {

SshHosts::SshHosts(const std::string& shell) {
  std::ofstream hostfile(folder_.path() / "hosts");
  for (const char* const name : {"h0", "h1"}) {
    SshServer::Settings settings;
    settings.shell = shell;
    servers_.push_back(std::make_unique<SshServer>(settings));
    user_.befriend(*servers_.back(), name);
    hostfile << name << " slots=2\n";
  }
}

std::vector<std::string> SshHosts::words(const std::vector<std::string>& more) const {
  std::vector<std::string> all{"-q", "-H", folder_.path() / "hosts", "--master_addr", "127.0.0.1"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<std::string> SshHosts::shell(const std::string& script) const {
  return words({"sh", "-c", script});
}

bool SshHosts::nothing_left() const {
  return std::ranges::all_of(std::array{0, 1}, [this](int host) {
    return wait_until_none([&] { return server(host).user_processes(); });
  });
}

std::vector<pid_t> SshHosts::agents_of(int host) const {
  std::vector<pid_t> found;
  for (const pid_t pid : server(host).user_processes()) {
    std::ifstream file(fmt::format("/proc/{}/cmdline", pid), std::ios::binary);
    const std::string words(std::istreambuf_iterator<char>(file), {});
    if (words == std::string(DSTRAIN_PROGRAM) + '\0' + "agent" + '\0') found.push_back(pid);
  }
  return found;
}

}  // namespace dstrain::test
