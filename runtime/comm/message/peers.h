#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/call.h"
#include "runtime/comm/control/control_group.h"
#include "runtime/comm/message/transport.h"

namespace dstrain::comm {

/// The other ranks of a group that communicates in messages. Checks that all ranks do the same,
/// waits for them, and names the culprit if they do not come. Bytes go through a transport;
/// agreement and failures go through a control group that nothing else uses. One per rank; used by
/// one thread at a time, except abort().
class Peers {
 public:
  Peers(std::unique_ptr<Transport> transport,
        std::unique_ptr<ControlGroup> control,
        double timeout_seconds);

  [[nodiscard]] Transport& transport() { return *transport_; }
  [[nodiscard]] ControlGroup& control() { return *control_; }
  [[nodiscard]] int rank() const { return transport_->rank(); }
  [[nodiscard]] int size() const { return transport_->size(); }

  /// Connects this rank with others during an operation, as Transport::connect().
  void connect(const std::vector<int>& peers);

  /// Announces this rank's operation to all and waits until all have announced the same: a barrier.
  /// Throws Error{comm} on every rank if they differ.
  void agree(const Call& call);

  /// Messages that are awaited together. Destroy it before the memory that they use.
  class Batch {
   private:
    friend class Peers;
    struct Started {
      int peer = 0;
      Message message;
    };
    std::vector<Started> started_;
  };
  /// Starts a message of the current operation; nothing if `bytes` is 0.
  void send(Batch& batch, int peer, const void* from, Bytes bytes);
  void receive(Batch& batch, int peer, void* to, Bytes bytes);
  /// Waits for the messages of the batch, which is empty afterwards.
  void finish(Batch& batch);

  /// Sends `bytes` bytes to `call.peer`, after a header that describes them, and returns once they
  /// are in transit. The first send between two ranks waits until both are here and connects them.
  void send_alone(const Call& call, const void* from, Bytes bytes);
  /// Receives a send_alone() of `call.peer`. If it is a different call, throws Error{comm} and
  /// makes all ranks fail, because the sender would wait forever.
  void receive_alone(const Call& call, void* to, Bytes bytes);

  /// Makes waiting and later operations of all ranks throw Error{aborted}. Thread-safe.
  void abort() noexcept { control_->abort(); }
  /// Throws the failure of another rank that caused this one's, if it becomes known within
  /// `seconds`.
  void look_for_cause(double seconds);
  /// Makes all ranks fail, and throws.
  [[noreturn]] void fail_all(ErrorCode code, const std::string& why);
  /// Returns "all_reduce of 4 f32 on rank 0".
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
