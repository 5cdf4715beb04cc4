#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/types.h>

#include "launcher/hosts/agent_link.h"
#include "launcher/plan/job_env.h"
#include "launcher/protocol/frame_pipe.h"
#include "launcher/protocol/protocol.h"
#include "runtime/base/function_ref.h"

namespace dstrain::launcher {

/// The launcher's side of one agent: the link, its frames, and the host's state.
class HostAgent {
 public:
  enum class State {
    connecting,  ///< has not said hello
    ready,       ///< has
    working,     ///< got its job
    finished,    ///< has reported that all is done; its stream ends soon
    ended        ///< nothing more will come
  };
  using OnFrame = FunctionRef<void(const Frame&)>;
  static constexpr std::size_t poll_count = 2;

  /// Borrows the task.
  HostAgent(const HostTask& task, std::unique_ptr<AgentLink> link);

  [[nodiscard]] const HostTask& task() const { return task_; }
  [[nodiscard]] const std::string& name() const { return task_.host; }
  [[nodiscard]] int first_rank() const { return task_.spec.ranks.front().rank; }
  /// 0: it runs on another host.
  [[nodiscard]] pid_t pid() const { return link_->pid(); }
  [[nodiscard]] int ranks() const { return static_cast<int>(task_.spec.ranks.size()); }
  /// Throws Error{remote} unless the rank is one of its own.
  int check_rank(int rank) const;

  void add_polls(std::vector<pollfd>& fds) const;
  /// Takes the polled descriptors. Returns false at the end of the stream; throws Error{remote} for
  /// frames that our agents do not send.
  bool receive(std::span<const pollfd> fds, OnFrame on_frame);
  template <class Type>
  void send(Type type, std::string_view payload) {
    pipe_.send(type, payload);
  }
  void flush();
  /// Lets it send as much more output as was passed on.
  void acknowledge();

  /// Once receive() returned false: why, in one line.
  std::string end_reason();
  void abandon() { link_->abandon(); }
  bool child_ended(pid_t pid, int wait_status) { return link_->child_ended(pid, wait_status); }
  /// The output before the agent's first frame, in one line.
  [[nodiscard]] std::string noise() const;

  State state = State::connecting;
  Hello hello;
  std::map<int, pid_t> pids;  ///< of the ranks that were started
  std::size_t owed_acks = 0;  ///< bytes of output
  double finish_deadline = 0;
  std::string failure;  ///< why the host did not come up, or was lost

 private:
  const HostTask& task_;
  std::unique_ptr<AgentLink> link_;
  FramePipe pipe_;
};

}  // namespace dstrain::launcher
