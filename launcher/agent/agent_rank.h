#pragma once
#include <array>
#include <csignal>
#include <string_view>
#include <utility>

#include <sys/types.h>

#include "launcher/agent/rank_channel.h"
#include "launcher/agent/rank_log.h"
#include "launcher/agent/rank_view.h"
#include "launcher/plan/core_binding.h"
#include "launcher/protocol/protocol.h"
#include "runtime/base/function_ref.h"
#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// One rank on its agent: the process, the read ends of its output, its log file.
class AgentRank {
 public:
  using OnOutput = FunctionRef<void(OutputStream, std::string_view)>;

  /// What the agent passes to each rank that it starts.
  struct Context {
    const JobSpec& job;
    int cores;                                 ///< of the node
    const std::vector<CoreBinding>& bindings;  ///< of its ranks, by local rank, or none
    int null_fd;
    int listener;  ///< for the store of rank 0; -1: it listens itself
    const sigset_t& signal_mask;
  };
  /// Starts rank number `index` of the job. Throws Error that says why it does not run.
  static AgentRank start(const Context& context, std::size_t index);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool running() const { return running_; }
  void mark_ended() { running_ = false; }
  /// Sends to the rank's process group; SIGTERM also wakes a stopped one. Does nothing once the
  /// rank has ended: its pid may then belong to another process.
  void signal(int number) const;

  /// -1 once the stream has ended.
  [[nodiscard]] int fd(OutputStream stream) const {
    return pipes_[static_cast<std::size_t>(stream)].get();
  }
  /// Passes on the output that has arrived, at most about `bytes_max`.
  void read_output(OutputStream stream, std::size_t bytes_max, OnOutput on_output);
  /// Whether a write to the log file failed since the last question.
  bool take_log_failure() { return std::exchange(log_failed_, false); }
  void finish_log() { log_failed_ |= !log_.finish(); }
  RankChannel& channel() { return channel_; }
  [[nodiscard]] const RankChannel& channel() const { return channel_; }
  RankView& view() { return view_; }

 private:
  int rank_ = 0;
  pid_t pid_ = 0;
  bool running_ = true;
  bool log_failed_ = false;
  std::array<UniqueFd, 2> pipes_;
  RankChannel channel_;
  RankView view_;
  RankLog log_;
};

}  // namespace dstrain::launcher
