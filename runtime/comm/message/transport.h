#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/deadline.h"
#include "runtime/base/function_ref.h"
#include "runtime/base/units.h"

namespace dstrain::comm {

/// One message in transit. Its memory must stay valid until it is done. Destroying it cancels it.
/// The memory of a lost message has unspecified contents. Used by the thread that operates.
class PendingMessage {
 public:
  virtual ~PendingMessage() = default;

  enum class State {
    done,
    pending,  ///< not yet
    lost,     ///< the peer cannot be reached any more
  };
  /// Waits until the state is known, at the latest until `deadline`. Reports a message that is done
  /// even after the deadline, once.
  virtual State wait(Deadline deadline) = 0;
};
using Message = std::unique_ptr<PendingMessage>;

/// Moves bytes between the ranks of one group of processes, on one node or several: the interface
/// to a network library. It does not know operations; Peers adds agreement and errors. Messages
/// from one rank to another arrive in the order sent, and a receive has exactly the bytes of its
/// send. Ranks are connected before their first message. One thread at a time.
class Transport {
 public:
  virtual ~Transport() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// Connects this rank with `peers`, each of which has this rank among its own. Every rank of the
  /// group calls it; connected ranks stay connected. Throws Error{comm} or Error{timeout} that
  /// names the ranks that cannot be reached. Does nothing if the library connects by itself.
  virtual void connect(const std::vector<int>& peers) = 0;
  /// Connects this rank with one other, which calls it too. While waiting for that rank, calls
  /// `look` now and then, which may throw.
  virtual void connect_pair(int peer, FunctionRef<void()> look) = 0;

  /// Start a message and do not wait. `bytes` is more than 0.
  virtual Message send(int peer, const void* from, Bytes bytes) = 0;
  virtual Message receive(int peer, void* to, Bytes bytes) = 0;

  /// The reason why a peer was lost, in the library's words; may be empty.
  [[nodiscard]] virtual std::string reason() const = 0;

  /// The number for a new group: its ranks agree on the largest that one of them returns.
  [[nodiscard]] virtual std::int64_t next_group() const = 0;
  /// Makes the transport of a part of this group, in which no ranks are connected yet. Every member
  /// calls it.
  struct Subgroup {
    std::vector<int> members;  ///< ranks here, in the order of the subgroup
    int rank = 0;              ///< in the subgroup
    std::int64_t group = 0;    ///< number that all ranks of this group agreed on
    int split = 0;             ///< number of earlier splits of this group
  };
  virtual std::unique_ptr<Transport> split(const Subgroup& subgroup) = 0;
};

}  // namespace dstrain::comm
