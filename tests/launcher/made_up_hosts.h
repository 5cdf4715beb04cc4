#pragma once
#include <memory>
#include <string>

#include "launcher/hosts/host_agents.h"
#include "launcher/job/launch.h"
#include "runtime/base/error.h"

namespace dstrain::test {

/// A job on two hosts, "h0" and "h1", to which nothing is sent: tests make up what comes from them.
struct MadeUpHosts {
  launcher::LaunchJob job;
  launcher::HostAgents agents;

  explicit MadeUpHosts(int first_rank = 0, int ranks_each = 1) {
    job.version = "1.2";
    job.world_size = 2 * ranks_each;
    job.supervision.ranks = 2 * ranks_each;
    job.supervision.first_rank = first_rank;
    int rank = first_rank;
    for (const char* const name : {"h0", "h1"}) {
      launcher::HostTask task{name, true, {}};
      for (int i = 0; i < ranks_each; ++i) task.spec.ranks.push_back({rank++, i, {}});
      job.hosts.push_back(task);
    }
    job.open = [](const std::string&, const sigset_t&) -> std::unique_ptr<launcher::AgentLink> {
      fail(ErrorCode::remote, "nothing is sent");
    };
    sigset_t mask;
    sigemptyset(&mask);
    agents.start({job.id, job.hosts, job.open, job.silence_seconds, mask});
  }
  [[nodiscard]] launcher::HostAgent& first() const { return **agents.begin(); }
  [[nodiscard]] launcher::HostAgent& second() const { return **(agents.begin() + 1); }
};

}  // namespace dstrain::test
