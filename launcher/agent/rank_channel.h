#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// The agent's end of a rank's control socket (runtime/rank/rank_control.h). Never blocks. Keeps
/// only the newest progress and a few answers, whatever the rank sends.
class RankChannel {
 public:
  /// Makes the socket; returns the rank's end. Throws Error{io}.
  UniqueFd open();
  /// To be polled for POLLIN; -1 without a channel, or once its other end is closed.
  [[nodiscard]] int fd() const { return socket_.get(); }

  /// Reads what has arrived.
  void receive();
  [[nodiscard]] bool has_progress() const { return !progress_.empty(); }
  enum class Which { answers, all };
  /// Messages for the launcher, in order, the progress last.
  std::vector<std::string> take(Which which);
  /// Drops the message if the rank does not read.
  void send(std::string_view message) const;

 private:
  UniqueFd socket_;
  std::vector<std::string> answers_;
  std::string progress_;
};

}  // namespace dstrain::launcher
