#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <poll.h>

#include "launcher/hosts/agent_link.h"
#include "launcher/protocol/protocol.h"
#include "launcher/protocol/wire.h"
#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// Passes bytes between the launcher's socket and a host's link, and beats between the launcher's
/// frames. Queues what the launcher sends before the link exists. Not thread-safe; times are
/// seconds of a steady clock.
class RelayChannel {
 public:
  static constexpr std::size_t poll_count = 4;

  RelayChannel(UniqueFd launcher, double silence_seconds);
  void open(std::unique_ptr<AgentLink> link, double now);
  [[nodiscard]] bool has_link() const { return link_ != nullptr; }
  /// Ends the channel, and its link if it has one.
  void give_up(const std::string& reason);

  /// Appends poll_count entries; advance() takes them, polled.
  void add_polls(std::vector<pollfd>& fds) const;
  void advance(std::span<const pollfd> fds, double now);
  /// Whether nothing is left to pass on, or the receiver is gone.
  [[nodiscard]] bool ended() const { return ended_; }
  /// Once ended.
  std::string take_end_reason();

 private:
  void read_launcher();
  void read_link(double now);
  void write_out();
  void beat(double now);
  void check_silence(double now);

  UniqueFd launcher_;
  std::unique_ptr<AgentLink> link_;
  FrameReader frames_;
  std::string to_agent_;
  std::string to_launcher_;
  std::string reason_;
  HeartBeat beats_;
  bool agent_has_spoken_ = false;  ///< the launcher sends frames to agents that have spoken
  bool link_open_ = false;
  bool ended_ = false;
};

}  // namespace dstrain::launcher
