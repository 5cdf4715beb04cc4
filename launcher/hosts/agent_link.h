#pragma once
#include <string>

#include <sys/types.h>

namespace dstrain::launcher {

/// A connection to the agent of one host: two descriptors that carry protocol.h's frames, through
/// pipes to a child or a thread that speaks SSH. Made at once; connecting and authenticating happen
/// in the background, and show as the stream's first bytes or its end.
class AgentLink {
 public:
  AgentLink() = default;
  AgentLink(const AgentLink&) = delete;
  AgentLink& operator=(const AgentLink&) = delete;
  /// Cuts the connection; a living agent then ends its ranks and itself.
  virtual ~AgentLink() = default;

  /// To poll and to make non-blocking; borrowed.
  [[nodiscard]] virtual int read_fd() const = 0;
  [[nodiscard]] virtual int write_fd() const = 0;
  /// A third descriptor to poll for input, -1 if there is none (any more): diagnostics of the
  /// connection. read_notes() reads what has arrived.
  [[nodiscard]] virtual int notes_fd() const { return -1; }
  virtual void read_notes() {}
  /// The process at the other end, when it is a child of this one; else 0.
  [[nodiscard]] virtual pid_t pid() const { return 0; }
  /// Returns whether the ended process was this link's, and then keeps its status.
  virtual bool child_ended(pid_t /*pid*/, int /*wait_status*/) { return false; }
  /// Once read_fd() has ended: what ended it and what to do about it, in one line; empty if nothing
  /// more is known.
  [[nodiscard]] virtual std::string end_reason() = 0;
  /// Ends it now, without waiting for the other side.
  virtual void abandon() = 0;
};

}  // namespace dstrain::launcher
