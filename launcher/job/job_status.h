#pragma once
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "launcher/job/launch.h"
#include "launcher/plan/elastic_plan.h"
#include "launcher/protocol/protocol.h"
#include "runtime/rank/rank_control.h"

namespace dstrain::launcher {

/// What the launcher knows of one of its ranks.
struct RankStatus {
  std::string host;
  std::string log_file;            ///< empty: none
  pid_t pid = 0;                   ///< 0: not started yet
  std::optional<int> wait_status;  ///< once it has ended
  bool lost = false;               ///< with its host: it sends nothing more
  std::optional<Progress> progress;
  std::string awaits;              ///< the ranks it waits for in the rendezvous, as last reported
  std::optional<int> unreachable;  ///< the rank whose host it cannot reach
};

/// What the launcher knows of its job, as its ranks report it.
struct JobStatus {
  std::string id;
  std::string program;            ///< "train", or what the ranks run
  std::string output_directory;   ///< of a training, absolute; empty: the job is not a training
  std::time_t start = 0;          ///< by the calendar
  double started_at_seconds = 0;  ///< by the clock that status_json() is given
  bool stopping = false;
  bool restarting = false;  ///< an earlier launch has ended, and no rank of the next one runs yet
  int restarts = 0;
  std::vector<std::string> idle{};    ///< of an elastic job: slots and hosts without a rank
  std::vector<std::string> absent{};  ///< hosts of the job that did not answer
  std::int64_t saved_step = 0;        ///< of the last checkpoint that was reported; 0: none
  /// The last checkpoint that the first rank has told of; empty: none. A training tells only of
  /// those that were asked for.
  std::string told_checkpoint{};
  std::int64_t highest_told_step = 0;  ///< of those
  std::map<int, RankStatus> ranks;

  /// Sets the ranks of another launch; their progress is not known yet.
  void set_ranks(const LaunchJob& job);
  /// A launch has ended and another will follow: forgets the progress of the ranks.
  void begin_restart(int number, std::int64_t newest_checkpoint);
  /// Whether it can save: a training, or a program that has taken a step of an engine.
  [[nodiscard]] bool trains() const;
  /// The path of the last checkpoint; empty: none.
  [[nodiscard]] std::string last_checkpoint() const;
  /// Takes a message of rank_control.h from a rank. Returns the first rank's answer to a request
  /// for a checkpoint.
  std::optional<SaveAnswer> take(const RankMessage& message);
  /// The first rank that cannot reach another one, on another host.
  [[nodiscard]] std::optional<int> cut_off_rank() const;
  /// The pairs of hosts that cannot reach each other.
  [[nodiscard]] std::vector<HostPair> hosts_apart() const;
  /// The first rank's progress; none before its first step.
  [[nodiscard]] std::optional<Progress> progress() const;
  /// The last step that the rank reported; 0: none.
  [[nodiscard]] std::int64_t last_step(int rank) const;
};

/// The exit status of a job that is stopped during a restart, before it continues; `status` if it
/// has no checkpoint. Warns that the last checkpoint is what remains.
int status_of_stop(const JobStatus& job, int status);

/// Before any rank is started. `now_seconds`: by the clock that status_json() is given.
JobStatus initial_status(const LaunchJob& job, double now_seconds);

/// One JSON object on one line: job, state, program, pid (of the launcher), start (UTC),
/// uptime_seconds, restarts, hosts, idle, absent, step, steps, loss, tokens_per_second,
/// last_checkpoint, output_dir and ranks, each with its state: starting, running, ended or lost;
/// null where there is nothing to say.
std::string status_json(const JobStatus& status, double now_seconds);

}  // namespace dstrain::launcher
