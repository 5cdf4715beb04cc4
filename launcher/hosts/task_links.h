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

/// The input to start an agent per rank with one program.
struct TaskStart {
  TaskCommand command;
  std::string job_id;    ///< marks the started processes
  sigset_t signal_mask;  ///< of the started processes
};

/// The links to agents that one program starts: starts it, and accepts its agents. Makes the secret
/// that they prove, which reaches them only in the environment of that program.
class TaskLinks {
 public:
  /// Throws Error{remote} if the program cannot be started or no agent could connect.
  TaskLinks(const TaskStart& start, int ranks)
      : TaskLinks(start, open_listener(start.command), ranks) {}

  struct Arrival {
    int rank = 0;
    std::unique_ptr<AgentLink> link;  ///< must not outlive this
  };
  void add_polls(std::vector<pollfd>& fds);
  /// Takes the polled descriptors that add_polls() added.
  std::vector<Arrival> advance(std::span<const pollfd> fds);
  /// All agents have connected.
  void close_listener() { listener_.close(); }
  [[nodiscard]] const TaskStarter& starter() const { return starter_; }

 private:
  /// The socket to which agents connect, and what they are told about it.
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
