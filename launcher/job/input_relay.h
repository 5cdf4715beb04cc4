#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace dstrain::launcher {

/// Gives the launcher's stdin to rank 0 piece by piece, as it asks for more (rank_control.h), so
/// that nothing is queued anywhere. Also decides whom Ctrl-C is for: a rank that is busy with its
/// input gets it once; the next one, and one while the rank waits for input, ends the job.
class InputRelay {
 public:
  /// Borrows `fd`.
  explicit InputRelay(int fd) : fd_(fd) {}

  /// The rank has asked for input.
  void asked(std::uint32_t number);
  /// To be polled for POLLIN; -1: the rank does not wait for input.
  [[nodiscard]] int fd() const { return state_ == State::waits ? fd_ : -1; }
  /// Call when `fd` is readable. Returns the message for the rank; none: nothing could be read yet.
  std::optional<std::string> read();
  /// Ctrl-C. Returns the message for the rank; none: it ends the job.
  std::optional<std::string> interrupt();

 private:
  enum class State : std::uint8_t { silent, waits, busy, interrupted };
  int fd_;
  State state_ = State::silent;
  std::uint32_t number_ = 0;  ///< of the rank's last request
};

}  // namespace dstrain::launcher
