#include "launcher/job/job_control.h"

#include <algorithm>

#include <fmt/format.h>

namespace dstrain::launcher {
namespace {

JobStatus initial_status(const LaunchJob& job, double now_seconds) {
  JobStatus status{.id = job.id,
                   .program = job.program,
                   .output_directory = job.output_directory,
                   .start = std::time(nullptr),
                   .started_at_seconds = now_seconds,
                   .ranks = {}};
  for (const HostTask& task : job.hosts) {
    for (std::size_t i = 0; i < task.spec.ranks.size(); ++i) {
      RankStatus& rank = status.ranks[task.spec.ranks[i].rank];
      rank.host = task.host;
      if (task.spec.log_files.empty()) continue;
      const std::string& log = task.spec.log_files[i];
      rank.log_file = task.remote ? fmt::format("{}:{}", task.host, log) : log;
    }
  }
  return status;
}

}  // namespace

JobControl::JobControl(const LaunchJob& job, double now_seconds)
    : status_(initial_status(job, now_seconds)), server_(status_) {}

void JobControl::heard(const RankMessage& message) {
  if (const auto progress = decode_progress(message.text)) {
    status_.ranks.at(message.rank).progress = progress;
    status_.saved_step = std::max(status_.saved_step, progress->saved_step);
  } else if (const auto answer = decode_save_answer(message.text);
             answer && message.rank == status_.ranks.begin()->first) {
    if (!answer->checkpoint.empty()) status_.saved_step = answer->step;
    server_.answer_save(*answer);
  }
}

std::int64_t JobControl::last_step(int rank) const {
  return status_.ranks.at(rank).progress.value_or(Progress()).step;
}

JobServer::Requests JobControl::serve(std::span<const pollfd> fds,
                                      double now_seconds,
                                      bool stopping) {
  status_.stopping = stopping;
  JobServer::Requests requests = server_.serve(fds, now_seconds);
  requests.stop &= !stopping;
  return requests;
}

}  // namespace dstrain::launcher
