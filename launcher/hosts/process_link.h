#pragma once
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "launcher/hosts/agent_link.h"
#include "launcher/process/process.h"
#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// A link whose other end is a child process: the agent itself, or a program that reaches it. The
/// child has its own session, so a Ctrl-C of the terminal does not reach it. A stopped child
/// continues when this process ends, so that it sees the end of its stdin.
class ProcessLink final : public AgentLink {
 public:
  struct Settings {
    std::string program;  ///< path
    std::vector<std::string> argv;
    std::vector<EnvVar> env;      ///< over ours
    bool keep_notes = false;      ///< keep its stderr for end_reason(); else it inherits ours
    bool wait_at_end = false;     ///< the destructor waits for the child, briefly
    bool ignores_stops = false;   ///< so that a signal to all processes of the job does not end it
    const sigset_t& signal_mask;  ///< the child's
  };
  /// Throws Error{remote} if the program cannot be started.
  explicit ProcessLink(const Settings& settings);
  ProcessLink(const ProcessLink&) = delete;
  ProcessLink& operator=(const ProcessLink&) = delete;
  ~ProcessLink() override;

  [[nodiscard]] int read_fd() const override { return from_child_.get(); }
  [[nodiscard]] int write_fd() const override { return to_child_.get(); }
  [[nodiscard]] int notes_fd() const override { return notes_.get(); }
  void read_notes() override;
  [[nodiscard]] pid_t pid() const override { return pid_; }
  bool child_ended(pid_t pid, int wait_status) override;
  /// Waits briefly for the child; kills it if it does not end.
  std::string end_reason() override;
  void abandon() override;

 private:
  void wait_for_child();

  std::string name_;
  bool wait_at_end_;
  UniqueFd to_child_;
  UniqueFd from_child_;
  UniqueFd notes_;
  std::string last_notes_;
  pid_t pid_ = 0;
  std::optional<int> wait_status_;
};

/// Starts `dstrain agent` on this machine. `job_id` marks it as the job's.
std::unique_ptr<AgentLink> start_local_agent(const std::string& job_id,
                                             const sigset_t& signal_mask);

}  // namespace dstrain::launcher
