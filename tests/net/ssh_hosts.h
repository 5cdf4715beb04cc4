#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/launch_process.h"
#include "tests/net/ssh_server.h"

namespace dstrain::test {

/// Two hosts, "h0" and "h1", that the real dstrain reaches through OpenSSH servers on loopback.
class SshHosts {
 public:
  /// `shell`: of the user there.
  explicit SshHosts(const std::string& shell = "/bin/bash");

  /// `-q -H FILE --master_addr 127.0.0.1`, then `more`. The hostfile has `slots` on each host.
  [[nodiscard]] std::vector<std::string> words(const std::vector<std::string>& more) const;
  /// The same, and a shell script as the program.
  [[nodiscard]] std::vector<std::string> shell(const std::string& script) const;
  [[nodiscard]] const SshServer& server(int host) const {
    return *servers_.at(static_cast<std::size_t>(host));
  }
  [[nodiscard]] const SshUser& user() const { return user_; }
  /// Whether what users ran on the hosts has ended, or soon does.
  [[nodiscard]] bool nothing_left() const;
  /// The agent of a host, and the process that guards it.
  [[nodiscard]] std::vector<pid_t> agents_of(int host) const;

 private:
  SshUser user_;
  std::vector<std::unique_ptr<SshServer>> servers_;
  TempDir folder_;
};

}  // namespace dstrain::test
