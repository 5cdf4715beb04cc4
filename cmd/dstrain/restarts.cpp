#include "cmd/dstrain/restarts.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launcher/job/job_session.h"
#include "launcher/job/restart_pause.h"
#include "launcher/process/signals.h"
#include "runtime/base/log.h"
#include "runtime/checkpoint/catalog.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::cmd {
namespace {

using launcher::LaunchResult;

/// The step of the newest checkpoint that looks intact.
std::optional<std::int64_t> newest_checkpoint(const std::filesystem::path& output) {
  std::error_code ignored;
  if (output.empty() || !std::filesystem::is_directory(output, ignored)) return std::nullopt;
  for (const checkpoint::Found& found : checkpoint::list_checkpoints(output)) {
    if (checkpoint::verify(found.path, checkpoint::Depth::names).intact()) return found.step;
  }
  return std::nullopt;
}

/// From where a restart goes on, "from checkpoint-10", as far as the launcher knows.
std::string describe_start(std::optional<std::int64_t> saved,
                           const launcher::JobStatus& job,
                           bool trains) {
  if (saved) return fmt::format("from checkpoint-{}", *saved);
  if (!job.told_checkpoint.empty()) return "after the program has saved " + job.told_checkpoint;
  return trains ? "from the start" : "from where the program begins";
}

/// Runs a job from its first launch to its last.
class RestartedJob {
 public:
  RestartedJob(const MakeLaunch& make, const RestartPolicy& policy)
      : make_(make), policy_(policy) {}
  int run();

 private:
  /// How a launch ended; `final`: no other can follow.
  struct Outcome {
    LaunchResult result;
    bool final = false;
  };
  Outcome launch_who_come();
  LaunchResult launch(NextLaunch next, const std::vector<std::string>& absent);
  [[nodiscard]] bool is_worth_another(const Outcome& outcome) const;
  [[nodiscard]] std::optional<double> begin_again(const Outcome& outcome,
                                                  std::optional<std::int64_t> before);
  void tell_how_to_resume(const LaunchResult& result, int status) const;
  [[nodiscard]] bool ignored_data_skip() const;
  void leave_out_one(const LaunchResult& result);
  void prepare(launcher::LaunchJob& job) const;

  const MakeLaunch& make_;
  const RestartPolicy& policy_;
  std::optional<launcher::JobSession> session_;  ///< from the first launch on
  int restarts_ = 0;
  int fruitless_ = 0;
  /// Of the checkpoints that a program has told of before the last launch.
  std::int64_t highest_told_before_ = 0;
  bool resumes_ = false;
  std::optional<std::int64_t> first_checkpoint_;  ///< the newest one before the first launch
  bool elastic_ = false;
  std::vector<std::string> told_;              ///< the notices of the last launch that started
  std::vector<std::string> left_out_;          ///< for the rest of the job
  std::vector<std::string> left_out_reasons_;  ///< not yet reported
};

/// Passes the restart count to the ranks, and makes training resume from the last checkpoint.
void RestartedJob::prepare(launcher::LaunchJob& job) const {
  if (restarts_ == 0) return;
  for (launcher::HostTask& task : job.hosts) {
    launcher::set_env(task.spec.env, env::restart_count, std::to_string(restarts_));
    std::vector<std::string>& argv = task.spec.command.argv;
    if (!resumes_) continue;
    argv.emplace_back("--resume_from_checkpoint");  // the last one typed counts
    argv.emplace_back("latest");
    if (ignored_data_skip()) argv.insert(argv.end(), {"--ignore_data_skip", "false"});
  }
}

LaunchResult RestartedJob::launch(NextLaunch next, const std::vector<std::string>& absent) {
  elastic_ = next.job.elastic;
  prepare(next.job);
  if (!session_) {
    session_.emplace(next.job);
    const std::string& failure = session_->server.failure();
    if (!failure.empty()) log_warning("dstrain status will not find this job: " + failure);
  }
  session_->status.idle = std::move(next.idle);
  session_->status.absent = absent;
  std::vector<std::string> notices = next.job.notices;
  std::erase_if(next.job.notices, [this](const std::string& notice) {
    return std::ranges::find(told_, notice) != told_.end();
  });
  LaunchResult result = launcher::run_job(next.job, *session_);
  if (result.started) told_ = std::move(notices);
  return result;
}

/// Launches without the hosts that do not come up, until all remaining ones do. Only launches of
/// elastic jobs have absent hosts. Reports the reasons once: when the job continues without them,
/// or cannot.
RestartedJob::Outcome RestartedJob::launch_who_come() {
  std::vector<std::string> absent = left_out_;
  std::vector<std::string> untold = std::exchange(left_out_reasons_, {});
  for (;;) {
    Result<NextLaunch> next = make_(absent);
    if (!next.ok()) {
      log_error(
          fmt::format("{}{}{}", next.error(), untold.empty() ? "" : ": ", fmt::join(untold, "; ")));
      return {.result = {.status = status::could_not_launch, .absent = {}}, .final = true};
    }
    for (const std::string& reason : untold) log_warning(reason + "; left out");
    untold.clear();
    LaunchResult result = launch(std::move(next.value()), absent);
    if (result.absent.empty() || result.stopped_by_user) return {std::move(result), false};
    for (const launcher::AbsentHost& host : result.absent) {
      absent.push_back(host.host);
      untold.push_back(fmt::format("host {}: {}", host.host, host.reason));
    }
  }
}

/// Leaves out one of two hosts that cannot reach each other, for the rest of the job, because
/// detecting it again would take most of --timeout.
void RestartedJob::leave_out_one(const LaunchResult& result) {
  if (!elastic_ || result.apart.empty()) return;
  const std::string host = launcher::host_to_leave_out(result.apart);
  std::vector<std::string> others;
  for (const launcher::HostPair& pair : result.apart) {
    if (pair.first == host) others.push_back(pair.second);
    if (pair.second == host) others.push_back(pair.first);
  }
  left_out_.push_back(host);
  left_out_reasons_.push_back(
      fmt::format("host {}: it and {} cannot reach each other", host, fmt::join(others, ", ")));
}

bool RestartedJob::is_worth_another(const Outcome& outcome) const {
  const LaunchResult& result = outcome.result;
  if (outcome.final || policy_.fruitless_max == 0 || result.stopped_by_user) return false;
  switch (result.status) {
    case status::done:
    case status::bad_input:
    case status::unsaved:
    case status::stopped_with_checkpoint:
      return false;
    case status::could_not_launch:
      return restarts_ > 0 || result.lost_a_host || (elastic_ && !result.apart.empty());
    default:
      return true;
  }
}

/// Counts and reports a restart. Returns the seconds until it starts; none: no restart.
std::optional<double> RestartedJob::begin_again(const Outcome& outcome,
                                                std::optional<std::int64_t> before) {
  if (!is_worth_another(outcome)) return std::nullopt;
  const auto saved = newest_checkpoint(policy_.output_directory);
  const launcher::JobStatus& job = session_->status;
  const bool has_told =
      job.highest_told_step > std::exchange(highest_told_before_, job.highest_told_step);
  fruitless_ = saved > before || has_told ? 0 : fruitless_ + 1;
  if (fruitless_ > policy_.fruitless_max) {
    log_error(fmt::format("--max_restarts {}: giving up after this many without a new checkpoint",
                          policy_.fruitless_max));
    return std::nullopt;
  }
  ++restarts_;
  resumes_ |= saved.has_value();
  const double pause = launcher::restart_pause_seconds(fruitless_);
  log_warning(fmt::format("status {}: restart {}{}, {} ({} of {} without a new checkpoint)",
                          outcome.result.status, restarts_,
                          pause > 0 ? fmt::format(" in {:.0f} s", pause) : "",
                          describe_start(saved, job, !policy_.output_directory.empty()), fruitless_,
                          policy_.fruitless_max));
  session_->status.begin_restart(restarts_, saved.value_or(0));
  session_->server.refuse_saves();
  return pause;
}

/// Whether the job has already skipped that, and now resumes from its own checkpoint.
bool RestartedJob::ignored_data_skip() const {
  return policy_.ignore_data_skip &&
         newest_checkpoint(policy_.output_directory) > first_checkpoint_;
}

/// Says how to resume training that failed or ended without a save.
void RestartedJob::tell_how_to_resume(const LaunchResult& result, int status) const {
  constexpr std::array told_otherwise{status::done, status::bad_input, status::unsaved,
                                      status::stopped_with_checkpoint};
  if (!result.started || std::ranges::count(told_otherwise, status) > 0) return;
  const auto saved = newest_checkpoint(policy_.output_directory);
  const std::string& told = session_->status.told_checkpoint;
  if (!saved && !told.empty()) log_info("the program's newest checkpoint is " + told);
  if (!saved) return;
  log_info(
      fmt::format("the newest checkpoint is {}; to resume, rerun the same command with "
                  "--resume_from_checkpoint latest{}",
                  (policy_.output_directory / checkpoint::directory_name(*saved)).string(),
                  ignored_data_skip() ? " and without --ignore_data_skip" : ""));
}

int RestartedJob::run() {
  first_checkpoint_ = newest_checkpoint(policy_.output_directory);
  for (;;) {
    const auto before = newest_checkpoint(policy_.output_directory);
    const Outcome outcome = launch_who_come();
    int status = outcome.result.status;
    if (const auto pause = begin_again(outcome, before)) {
      const auto signal = launcher::pause_before_restart(*pause, *session_);
      if (!signal) {
        leave_out_one(outcome.result);
        continue;
      }
      status = launcher::status_of_stop(session_->status, 128 + *signal);
    }
    tell_how_to_resume(outcome.result, status);
    if (session_) session_->server.close(status);
    // The status is final: another Ctrl-C must not change it.
    launcher::set_stop_signals(SIG_IGN);
    return status;
  }
}

}  // namespace

int run_with_restarts(const MakeLaunch& make, const RestartPolicy& policy) {
  return RestartedJob(make, policy).run();
}

}  // namespace dstrain::cmd
