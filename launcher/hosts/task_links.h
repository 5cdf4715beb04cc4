#pragma once
#include <csignal>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <poll.h>

#include "launcher/hosts/agent_link.h"
#include "launcher/hosts/task_listener.h"
#include "launcher/hosts/task_starter.h"
#include "launcher/plan/task_launcher.h"

namespace dstrain::launcher {

/// What is needed to have one program start an agent per rank.
struct TaskStart {
  TaskCommand command;
  std::string job_id;    ///< marks what is started
  sigset_t signal_mask;  ///< of what is started
};

/// The links to agents that one program starts: starts it, and lets its agents in. The secret that
/// they prove is made here, and reaches them in the environment of that program alone.
class TaskLinks {
 public:
  /// Throws Error{remote} when the program cannot be started or nobody could connect.
  TaskLinks(const TaskStart& start, int ranks)
      : TaskLinks(start, open_place(start.command.here_only), ranks) {}

  struct Arrival {
    int rank = 0;
    std::unique_ptr<AgentLink> link;  ///< must not outlive this
  };
  void add_polls(std::vector<pollfd>& fds) const;
  /// Takes back what add_polls() added, polled.
  std::vector<Arrival> advance(std::span<const pollfd> fds);
  /// All are there.
  void close_listener() { listener_.close(); }
  [[nodiscard]] const TaskStarter& starter() const { return starter_; }

 private:
  /// Where agents come to, and how they are told of it.
  struct Place {
    UniqueFd listener;
    std::string secret;
    std::string meeting;  ///< the value of agents_variable
  };
  static Place open_place(bool here_only);
  TaskLinks(const TaskStart& start, Place place, int ranks);

  TaskListener listener_;
  TaskStarter starter_;
};

}  // namespace dstrain::launcher
