#include "launcher/job/failure_report.h"

#include <csignal>

#include <sys/wait.h>

#include <fmt/format.h>

#include "launcher/process/process.h"

namespace dstrain::launcher {
namespace {

std::string_view explain_kill(OomVerdict verdict) {
  switch (verdict) {
    case OomVerdict::certain:
      return " by the kernel's OOM killer: out of memory";
    case OomVerdict::likely:
      return ", most likely by the kernel's OOM killer, which was at work: out of memory";
    case OomVerdict::possible:
      return "; possibly out of memory";
    case OomVerdict::none:
      break;
  }
  return "";
}

}  // namespace

std::string describe_end(const RankFailure& failure) {
  if (!WIFSIGNALED(failure.wait_status)) {
    return fmt::format("ended with status {}", WEXITSTATUS(failure.wait_status));
  }
  const int signal = WTERMSIG(failure.wait_status);
  return fmt::format("was killed by {}{}", signal_name(signal),
                     signal == SIGKILL ? explain_kill(failure.oom) : "");
}

std::string failure_report(const FailedRank& rank) {
  std::string text = fmt::format("dstrain: error: rank {} on {} (pid {}) {}\n", rank.failure.rank,
                                 rank.host, rank.pid, describe_end(rank.failure));
  if (rank.last_step > 0) text += fmt::format("  last step: {}\n", rank.last_step);
  if (!rank.last_lines.empty()) {
    text += fmt::format("  last lines of rank {}:\n", rank.failure.rank);
    for (const std::string& line : rank.last_lines) text += fmt::format("    {}\n", line);
  }
  if (!rank.log_file.empty()) text += fmt::format("  log file: {}\n", rank.log_file);
  return text;
}

}  // namespace dstrain::launcher
