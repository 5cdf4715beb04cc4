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
  /// Writes what goes without waiting.
  void flush();
  /// Writes all that is queued: everything has ended. A reader that has stalled is given up when a
  /// signal comes, and after five seconds when one came before.
  void drain(SignalSource& signals, bool signal_came);
  /// Why lines of the ranks are missing on stdout; empty where none is, or nobody reads it any
  /// more.
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
