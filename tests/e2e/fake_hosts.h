#pragma once
#include <string>
#include <vector>

#include "tests/e2e/launch_process.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {

/// A hostfile, and a program in place of ssh that runs the remote command on this machine: in
/// another directory, with nothing of the launcher's environment but PATH, and HOME. What the host
/// is called says how it behaves; fake_hosts.cpp has the list.
class FakeHosts {
 public:
  /// `hosts`: the lines of the hostfile.
  explicit FakeHosts(const std::string& hosts);

  /// `--log_level error -H FILE --ssh_command FAKE --master_addr 127.0.0.1`, then `words`.
  [[nodiscard]] std::vector<std::string> words(const std::vector<std::string>& more) const;
  /// The same, and a shell script as the program.
  [[nodiscard]] std::vector<std::string> shell(const std::string& script) const;
  /// From now on a host is, or no longer, "down" (it refuses connections) or "slow" (it does not
  /// answer them until it no longer is).
  void set(const std::string& host, const std::string& state, bool on) const;
  /// Kills what was started on a host named addressed*, which is down from then on.
  void crash(const std::string& host) const;
  /// The process that stands for the network "to" or "from" a host named cut*.
  [[nodiscard]] pid_t network(const std::string& direction, const std::string& host) const;
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  TempDir folder_;
};

}  // namespace dstrain::test
