#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/call.h"
#include "runtime/comm/control/control_group.h"
#include "runtime/comm/message/transport.h"

namespace dstrain::comm {

/// The other ranks of a group that talk in messages: finds out whether all do the same, waits for
/// them, and says who is to blame when they do not come. Bytes go through a transport; what is
/// agreed and what has failed through a control group that this one alone uses. One per rank; used
/// by one thread at a time, save abort().
class Peers {
 public:
  Peers(std::unique_ptr<Transport> transport,
        std::unique_ptr<ControlGroup> control,
        double timeout_seconds);

  [[nodiscard]] Transport& transport() { return *transport_; }
  [[nodiscard]] ControlGroup& control() { return *control_; }
  [[nodiscard]] int rank() const { return transport_->rank(); }
  [[nodiscard]] int size() const { return transport_->size(); }

  /// Connects this rank with others in the middle of an operation, as Transport::connect().
  void connect(const std::vector<int>& peers);

  /// Tells all ranks what this one does and waits until all do the same: a barrier. Throws
  /// Error{comm} on every rank when they differ.
  void agree(const Call& call);

  /// Messages that are waited for together. Goes before the memory that they use.
  class Batch {
   private:
    friend class Peers;
    struct Started {
      int peer = 0;
      Message message;
    };
    std::vector<Started> started_;
  };
  /// Starts a message of the current operation; none when there are no bytes.
  void send(Batch& batch, int peer, const void* from, Bytes bytes);
  void receive(Batch& batch, int peer, void* to, Bytes bytes);
  /// Waits for the messages of the batch, which then is empty.
  void finish(Batch& batch);

  /// Sends so many bytes to `call.peer`, after a word of what they are; returns when they are on
  /// their way. The first between two ranks waits until both are here and connects them.
  void send_alone(const Call& call, const void* from, Bytes bytes);
  /// What send_alone() of `call.peer` sends here. Throws Error{comm} when that is something else,
  /// and makes all ranks fail: the sender would wait in vain.
  void receive_alone(const Call& call, void* to, Bytes bytes);

  /// Makes waiting and later operations of all ranks throw Error{aborted}. Thread-safe.
  void abort() noexcept { control_->abort(); }
  /// Throws what has made a rank fail, when that becomes known within `seconds`.
  void look_for_cause(double seconds);
  /// Makes all ranks fail, and throws.
  [[noreturn]] void fail_all(ErrorCode code, const std::string& why);
  /// "all_reduce of 4 f32 on rank 0".
  [[nodiscard]] std::string doing() const;

 private:
  void begin(const Call& call);
  void begin_alone(const Call& call);
  void or_fail_all(FunctionRef<void()> connect);
  void wait(PendingMessage& message, int peer);
  void check_waits(Deadline deadline, int peer);
  [[noreturn]] void fail_lost(int peer);
  void check_not_failed();

  std::unique_ptr<Transport> transport_;
  std::unique_ptr<ControlGroup> control_;
  double timeout_seconds_;
  Call current_{Operation::join, DType::u8, 0, 0};
};

}  // namespace dstrain::comm
