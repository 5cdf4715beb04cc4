#pragma once
#include <string>

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
  /// Once read_fd() has ended: what ended it and what to do about it, in one line, or nothing when
  /// the stream's end is all there is to say.
  [[nodiscard]] virtual std::string end_reason() = 0;
  /// Ends it now, without waiting for the other side.
  virtual void abandon() = 0;
};

}  // namespace dstrain::launcher
