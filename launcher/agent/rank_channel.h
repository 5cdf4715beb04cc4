#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// The agent's end of a rank's control socket (runtime/rank/rank_control.h). Never waits. Whatever
/// the rank sends, no more is kept than its newest progress and a few answers.
class RankChannel {
 public:
  /// Makes the socket; returns the rank's end. Throws Error{io}.
  UniqueFd open();
  /// To be polled for POLLIN; -1 without a channel, or once its other end is closed.
  [[nodiscard]] int fd() const { return socket_.get(); }

  /// Takes in what has arrived.
  void receive();
  [[nodiscard]] bool has_progress() const { return !progress_.empty(); }
  enum class Which { answers, all };
  /// Messages for the launcher, in order, the progress last.
  std::vector<std::string> take(Which which);
  /// Lost when the rank does not listen.
  void send(std::string_view message) const;

 private:
  UniqueFd socket_;
  std::vector<std::string> answers_;
  std::string progress_;
};

}  // namespace dstrain::launcher
