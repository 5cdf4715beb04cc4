#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <poll.h>

#include "launcher/job/log_mux.h"
#include "launcher/job/output_sink.h"
#include "launcher/process/signals.h"

namespace dstrain::launcher {

/// The launcher's own standard streams: the ranks' lines and its own messages.
class Console {
 public:
  Console(int world_size, std::string log_level, LogMux::Prefixes prefixes);

  /// "dstrain: level: text" on stderr, unless the level is below the one that was asked for.
  void say(std::string_view level, const std::string& text);
  [[nodiscard]] LogMux& ranks() { return mux_; }

  /// To wait for readers that are behind.
  void add_polls(std::vector<pollfd>& fds) const;
  /// Writes as much as possible without waiting.
  void flush();
  /// Writes all that is queued: everything has ended. Gives up a stalled reader when a signal
  /// comes, or after five seconds if one came before.
  void drain(SignalSource& signals, bool signal_came);
  /// Says why lines of the ranks are missing on stdout; empty if none is, or if stdout has no
  /// reader.
  [[nodiscard]] std::string output_failure() const;
  [[nodiscard]] std::size_t pending_bytes() const {
    return out_.pending_bytes() + err_.pending_bytes();
  }

 private:
  std::string log_level_;
  OutputSink out_;
  OutputSink err_;
  LogMux mux_;
};

}  // namespace dstrain::launcher
