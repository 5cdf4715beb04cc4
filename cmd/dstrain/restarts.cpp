#include "cmd/dstrain/restarts.h"

#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "runtime/base/log.h"
#include "runtime/base/worker_env.h"
#include "runtime/checkpoint/catalog.h"

namespace dstrain::cmd {
namespace {

/// The step of the newest checkpoint that looks intact.
std::optional<std::int64_t> newest_checkpoint(const std::filesystem::path& output) {
  std::error_code ignored;
  if (output.empty() || !std::filesystem::is_directory(output, ignored)) return std::nullopt;
  for (const checkpoint::Found& found : checkpoint::list_checkpoints(output)) {
    if (checkpoint::verify(found.path, checkpoint::Depth::names).intact()) return found.step;
  }
  return std::nullopt;
}

bool is_worth_another(const launcher::LaunchResult& result, bool ran_before) {
  switch (result.status) {
    case status::done:
    case status::bad_input:
    case status::stopped_with_checkpoint:
      return false;
    case status::could_not_launch:
      return ran_before && !result.stopped_by_user;
    default:
      return !result.stopped_by_user;
  }
}

/// Tells the ranks which time this is, and training to go on from what was saved.
void prepare_restart(launcher::LaunchJob& job, int restart, bool resume) {
  for (launcher::HostTask& task : job.hosts) {
    launcher::set_env(task.spec.env, env::restart_count, std::to_string(restart));
    std::vector<std::string>& argv = task.spec.command.argv;
    if (!resume) continue;
    argv.emplace_back("--resume_from_checkpoint");  // the last one typed counts
    argv.emplace_back("latest");
  }
}

}  // namespace

int run_with_restarts(launcher::LaunchJob job, const RestartPolicy& policy) {
  int fruitless = 0;
  bool resumes = false;
  for (int restart = 1;; ++restart) {
    const auto before = newest_checkpoint(policy.output_directory);
    const launcher::LaunchResult result = launcher::run_job(job);
    if (policy.fruitless_max == 0 || !is_worth_another(result, restart > 1)) return result.status;
    const auto saved = newest_checkpoint(policy.output_directory);
    fruitless = saved > before ? 0 : fruitless + 1;
    if (fruitless > policy.fruitless_max) {
      log_error(fmt::format("--max_restarts {}: so many were without a new checkpoint; giving up",
                            policy.fruitless_max));
      return result.status;
    }
    log_warning(fmt::format("status {}: restart {}, {} ({} of {} without a new checkpoint)",
                            result.status, restart,
                            saved ? fmt::format("from checkpoint-{}", *saved) : "from the start",
                            fruitless, policy.fruitless_max));
    prepare_restart(job, restart, saved && !resumes);
    resumes |= saved.has_value();
  }
}

}  // namespace dstrain::cmd
