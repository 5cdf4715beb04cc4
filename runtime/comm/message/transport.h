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

/// One message on its way. Its memory must stay until it is done. Destroying it gives it up: what
/// a lost message's memory holds then is unknown. Used by the thread that operates.
class PendingMessage {
 public:
  virtual ~PendingMessage() = default;

  enum class State {
    done,
    pending,  ///< not yet
    lost,     ///< the peer cannot be reached any more
  };
  /// Waits until something is known, at the latest until `deadline`. A message that is done says so
  /// however late it is asked, once.
  virtual State wait(Deadline deadline) = 0;
};
using Message = std::unique_ptr<PendingMessage>;

/// Moves bytes between the ranks of one group of processes, on one node or several: what a network
/// library has to offer. It knows nothing of operations; Peers adds agreement and errors. Messages
/// from one rank to another arrive in the order sent, and a receive has exactly the bytes of its
/// send. Ranks are connected before they exchange the first. One thread at a time.
class Transport {
 public:
  virtual ~Transport() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// Connects this rank with `peers`, each of which has this rank among its own. Every rank of the
  /// group calls it; who is connected stays so. Throws Error{comm} or Error{timeout} that names who
  /// cannot be reached. Nothing to do where the library connects by itself.
  virtual void connect(const std::vector<int>& peers) = 0;
  /// Connects this rank with one other, which calls it too. While that one does not come, `look` is
  /// called now and then, which may throw.
  virtual void connect_pair(int peer, FunctionRef<void()> look) = 0;

  /// Start a message and do not wait. Bytes are more than 0.
  virtual Message send(int peer, const void* from, Bytes bytes) = 0;
  virtual Message receive(int peer, void* to, Bytes bytes) = 0;

  /// Why a peer was lost, in the library's words; may be empty.
  [[nodiscard]] virtual std::string reason() const = 0;

  /// A number that the ranks of a new group agree on: the largest that one of them gives.
  [[nodiscard]] virtual std::int64_t next_group() const = 0;
  /// The transport of a part of this group, in which nobody is connected yet. Every member calls
  /// it.
  struct Subgroup {
    std::vector<int> members;  ///< ranks here, in the order of the subgroup
    int rank = 0;              ///< in the subgroup
    std::int64_t group = 0;    ///< what all ranks of this group agreed on
    int split = 0;             ///< how many splits of this group came before
  };
  virtual std::unique_ptr<Transport> split(const Subgroup& subgroup) = 0;
};

}  // namespace dstrain::comm
