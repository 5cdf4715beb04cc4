#pragma once
#include <csignal>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <poll.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "launcher/agent/agent_rank.h"
#include "launcher/agent/agent_sender.h"
#include "launcher/agent/oom_watch.h"
#include "launcher/agent/rank_messages.h"
#include "launcher/agent/rank_watch.h"
#include "launcher/agent/stack_taker.h"
#include "launcher/plan/core_binding.h"
#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// Starts all ranks of an agent, passes on their output and messages, and reaps them and all other
/// children of the agent.
class NodeRanks {
 public:
  /// Borrows both.
  NodeRanks(AgentSender& sender, const Clock& clock)
      : sender_(sender),
        messages_(ranks_, sender, clock),
        watch_(ranks_, sender, clock),
        stacks_(ranks_, sender, clock) {}
  NodeRanks(const NodeRanks&) = delete;
  NodeRanks& operator=(const NodeRanks&) = delete;
  ~NodeRanks() = default;

  /// Reports each rank as started, up to the first that cannot be, for which it reports why.
  /// `listener`: for the store of rank 0, which owns it afterwards; may be none.
  void start(JobSpec job, const sigset_t& signal_mask, UniqueFd listener);
  /// Sends it to each rank that runs.
  void signal(int number) const;
  [[nodiscard]] bool any_runs() const;

  void add_polls(std::vector<pollfd>& fds);
  /// Takes the polled descriptors that add_polls() added.
  void read(std::span<const pollfd> fds);
  /// When read() is due even if nothing arrives; none while nothing is held back.
  [[nodiscard]] std::optional<double> deadline() const;
  /// ToAgent::rank_message, for one of the ranks.
  void send_to_rank(std::string_view payload) { messages_.send_to_rank(payload); }
  /// ToAgent::stacks.
  void take_stacks(std::uint32_t request) { stacks_.take(request); }
  /// The job has ended: reads the rest of the output, and completes the log files.
  void finish();

  /// Reaps this child if it has ended, whether a rank or not; -1: all that have ended.
  void reap(pid_t which);
  /// Whether there were children at the last reap of all; true from the start of a job.
  [[nodiscard]] bool has_children() const { return has_children_; }

 private:
  void start_ranks(const JobSpec& job,
                   const std::vector<CoreBinding>& bindings,
                   const sigset_t& signal_mask,
                   const UniqueFd& listener);
  void read_rank(AgentRank& rank, OutputStream stream, std::size_t bytes_max);
  void drain(AgentRank& rank);
  void rank_ended(AgentRank& rank, int wait_status, const rusage& used);
  KillCause cause_of(int wait_status, const rusage& used);

  AgentSender& sender_;
  OomWatch oom_;
  std::vector<AgentRank> ranks_;
  RankMessages messages_;
  RankWatch watch_;
  StackTaker stacks_;
  std::size_t polled_ranks_ = 0;
  bool has_children_ = false;
};

}  // namespace dstrain::launcher
