#pragma once
#include <string>

#include <sys/types.h>

namespace dstrain::launcher {

/// A connection to the agent of one host: two descriptors that carry protocol.h's frames, whatever
/// lies between: pipes to a child, or a thread that speaks SSH. Made at once; what takes time
/// (connecting, authenticating) happens behind it and shows as the stream's first bytes or its end.
class AgentLink {
 public:
  AgentLink() = default;
  AgentLink(const AgentLink&) = delete;
  AgentLink& operator=(const AgentLink&) = delete;
  /// Cuts the connection; an agent that still lives ends its ranks and itself then.
  virtual ~AgentLink() = default;

  /// To poll and to make non-blocking; borrowed.
  [[nodiscard]] virtual int read_fd() const = 0;
  [[nodiscard]] virtual int write_fd() const = 0;
  /// A third descriptor to poll for input, -1 when there is none (any more): what the connection
  /// has to say of itself. read_notes() takes what has come.
  [[nodiscard]] virtual int notes_fd() const { return -1; }
  virtual void read_notes() {}
  /// The process at the other end, when it is a child of this one; else 0.
  [[nodiscard]] virtual pid_t pid() const { return 0; }
  /// Whether the process that has ended was this link's; its status is kept then.
  virtual bool child_ended(pid_t /*pid*/, int /*wait_status*/) { return false; }
  /// Once read_fd() has ended: what ended it and what to do about it, in one line, or nothing when
  /// the stream's end is all there is to say.
  [[nodiscard]] virtual std::string end_reason() = 0;
  /// Ends it now, without waiting for the other side.
  virtual void abandon() = 0;
};

}  // namespace dstrain::launcher
