#pragma once
#include <string_view>

#include <sys/types.h>

#include "launcher/protocol/frame_pipe.h"
#include "launcher/protocol/protocol.h"
#include "launcher/protocol/rank_look.h"

namespace dstrain::launcher {

/// Sends an agent's frames to its launcher: a function for each FromAgent queues the frame. Tracks
/// how much of the ranks' output may be sent before the launcher acknowledges it.
class AgentSender {
 public:
  /// Borrows the pipe.
  explicit AgentSender(FramePipe& launcher) : launcher_(launcher) {}

  /// Must come first: the preamble, dstrain's version, and the addresses of the connection.
  void hello(std::string_view version);
  void beat() { launcher_.send(FromAgent::beat, ""); }
  void note(std::string_view text);
  void port(int port);
  void no_port(std::string_view reason);
  void started(int rank, pid_t pid);
  void refused(int rank, std::string_view reason);
  void rank_message(const RankMessage& message);
  void output(const Output& output);
  void look(const AgentLook& look) { launcher_.send(FromAgent::look, encode_look(look)); }
  void stacks(const Stacks& stacks) { launcher_.send(FromAgent::stacks, encode_stacks(stacks)); }
  void stop(int signal);
  void exited(const Exit& exit) { launcher_.send(FromAgent::exited, encode_exit(exit)); }
  void finished() { launcher_.send(FromAgent::finished, ""); }

  /// Bytes of output that may be sent unacknowledged; none before a job sets them.
  void set_window(std::size_t bytes) { window_bytes_ = bytes; }
  void acknowledged(std::size_t bytes);
  [[nodiscard]] bool may_output() const { return unacknowledged_bytes_ < window_bytes_; }

 private:
  FramePipe& launcher_;
  std::size_t window_bytes_ = 0;
  std::size_t unacknowledged_bytes_ = 0;
};

}  // namespace dstrain::launcher
