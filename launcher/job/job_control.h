#pragma once
#include <span>
#include <string_view>
#include <vector>

#include <poll.h>

#include "launcher/job/job_server.h"
#include "launcher/job/job_status.h"
#include "launcher/job/launch_job.h"

namespace dstrain::launcher {

/// Where a launch keeps what it hears of its ranks, and who asks from outside is answered.
class JobControl {
 public:
  /// `now_seconds`: here and below of the same clock.
  JobControl(const LaunchJob& job, double now_seconds);

  /// Why nobody can ask; empty: they can.
  [[nodiscard]] const std::string& failure() const { return server_.failure(); }
  void started(int rank, pid_t pid) { status_.ranks.at(rank).pid = pid; }
  void ended(int rank, int wait_status) { status_.ranks.at(rank).wait_status = wait_status; }
  /// A message of rank_control.h from one of the job's ranks.
  void heard(const RankMessage& message);
  /// The last step that the rank spoke of; 0: none.
  [[nodiscard]] std::int64_t last_step(int rank) const;

  [[nodiscard]] std::uint32_t newest_save_request() const { return server_.newest_save_request(); }

  void add_polls(std::vector<pollfd>& fds) const { server_.add_polls(fds); }
  /// See JobServer. Who wants a stop while the job is stopping only waits for the end: to hurry it
  /// is for whoever sees its output.
  JobServer::Requests serve(std::span<const pollfd> fds, double now_seconds, bool stopping);
  /// The job has ended.
  void close(int exit_status) { server_.close(exit_status); }

 private:
  JobStatus status_;
  JobServer server_;
};

}  // namespace dstrain::launcher
