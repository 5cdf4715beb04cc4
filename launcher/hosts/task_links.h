#pragma once
#include <csignal>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <poll.h>

#include "launcher/hosts/agent_link.h"
#include "launcher/hosts/task_starter.h"
#include "launcher/plan/task_launcher.h"
#include "runtime/os/token_listener.h"

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
      : TaskLinks(start, open_listener(start.command), ranks) {}

  struct Arrival {
    int rank = 0;
    std::unique_ptr<AgentLink> link;  ///< must not outlive this
  };
  void add_polls(std::vector<pollfd>& fds);
  /// Takes back what add_polls() added, polled.
  std::vector<Arrival> advance(std::span<const pollfd> fds);
  /// All are there.
  void close_listener() { listener_.close(); }
  [[nodiscard]] const TaskStarter& starter() const { return starter_; }

 private:
  /// Where agents connect to, and how they are told of it.
  struct OpenListener {
    UniqueFd socket;
    std::string secret;
    std::string address;  ///< the value of agents_variable
  };
  static OpenListener open_listener(const TaskCommand& command);
  TaskLinks(const TaskStart& start, OpenListener open, int ranks);

  int ranks_;
  TokenListener listener_;
  TaskStarter starter_;
};

}  // namespace dstrain::launcher
