#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "launcher/protocol/protocol.h"
#include "launcher/protocol/wire.h"

namespace dstrain::launcher {

/// Finds the start of an agent's frames. Output of a login shell or a connection before it is
/// noise.
class PreambleFilter {
 public:
  /// Takes bytes as they come and returns those after the preamble. Throws Error{remote} after more
  /// than 1 MiB without one.
  std::string pass(std::string_view bytes);
  [[nodiscard]] bool found() const { return found_; }
  /// The bytes before the preamble.
  [[nodiscard]] const std::string& noise() const { return noise_; }

 private:
  std::string noise_;
  bool found_ = false;
};

/// Frames over two file descriptors (borrowed, made non-blocking), for a poll loop. `Begin` says
/// whether the peer's frames follow its preamble.
class FramePipe {
 public:
  struct Ends {
    int read_fd;
    int write_fd;
  };
  enum class Begin { at_once, after_preamble };
  explicit FramePipe(Ends ends, Begin begin = Begin::at_once);

  /// Our own preamble, before any frame.
  void send_preamble() { queue_ += agent_preamble; }

  template <class Type>
  void send(Type type, std::string_view payload) {
    append_frame(queue_, static_cast<std::uint8_t>(type), payload);
  }
  /// Writes as much as possible without waiting. False when the peer is gone.
  bool flush();
  /// Drops unsent bytes.
  void drop_pending() {
    queue_.clear();
    position_ = 0;
  }
  /// Reads what has arrived, or the first MiB of it. False at the end of the stream.
  bool receive();
  std::optional<Frame> next() { return reader_.next(); }

  /// The bytes before the peer's preamble.
  [[nodiscard]] const std::string& noise() const { return preamble_.noise(); }
  [[nodiscard]] int read_fd() const { return ends_.read_fd; }
  [[nodiscard]] int write_fd() const { return ends_.write_fd; }
  [[nodiscard]] std::size_t pending_bytes() const { return queue_.size() - position_; }

 private:
  Ends ends_;
  std::string queue_;
  std::size_t position_ = 0;
  Begin begin_;
  PreambleFilter preamble_;
  FrameReader reader_;
};

}  // namespace dstrain::launcher
