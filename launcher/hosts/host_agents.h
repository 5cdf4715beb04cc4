#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "launcher/hosts/host_agent.h"
#include "launcher/hosts/relay.h"
#include "launcher/hosts/remote_link.h"

namespace dstrain::launcher {

/// The agents of a job, in the order of its tasks, with the relay that holds the remote ones.
class HostAgents {
 public:
  struct Settings {
    const std::string& job_id;
    const std::vector<HostTask>& tasks;  ///< borrowed
    const OpenRemote& open;
    double silence_seconds;
    const sigset_t& signal_mask;                ///< of the processes that are started
    const TaskCommand* task_command = nullptr;  ///< starts the agents, if one program does
  };
  HostAgents() = default;
  HostAgents(const HostAgents&) = delete;
  HostAgents& operator=(const HostAgents&) = delete;
  ~HostAgents() { close(); }

  /// Starts the agents here, and starts to connect to the others. Throws Error{remote}.
  void start(const Settings& settings);
  /// Closes all links and waits briefly for the processes that were started here.
  void close();
  /// How many hosts they are on.
  [[nodiscard]] int hosts() const;
  /// As Relay::starter_output().
  [[nodiscard]] std::string starter_output() { return relay_ ? relay_->starter_output() : ""; }
  /// As Relay::starter_kill() if one program started all agents; else empty at once.
  [[nodiscard]] std::string starter_kill(Deadline deadline) const {
    return relay_ && has_starter_ ? relay_->starter_kill(deadline) : "";
  }
  /// 0: none.
  [[nodiscard]] pid_t relay_pid() const { return relay_ ? relay_->pid() : 0; }

  [[nodiscard]] auto begin() const { return agents_.begin(); }
  [[nodiscard]] auto end() const { return agents_.end(); }
  [[nodiscard]] std::size_t size() const { return agents_.size(); }
  [[nodiscard]] HostAgent& front() const { return *agents_.front(); }
  [[nodiscard]] HostAgent& of_rank(int rank) const;
  [[nodiscard]] bool any(HostAgent::State state) const;
  /// Whether anything may still come from one of them.
  [[nodiscard]] bool any_open() const;

  /// Gives each host its job, whose rank 0 will listen there.
  void start_ranks(const std::string& address, int port) const;
  /// As ToAgent::signal, to all hosts that have ranks.
  void send_signal(int number) const;
  void abandon() const;

 private:
  std::optional<Relay> relay_;
  bool has_starter_ = false;
  std::vector<std::unique_ptr<HostAgent>> agents_;
};

}  // namespace dstrain::launcher
