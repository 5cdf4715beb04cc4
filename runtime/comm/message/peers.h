#pragma once
#include <array>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/comm/call.h"
#include "runtime/comm/message/transport.h"

namespace dstrain::comm {

/// The other ranks of a group that talk in messages: finds out whether all do the same, waits for
/// them, and says who is to blame when they do not come. One per rank; used by one thread at a
/// time, save abort().
///
/// Each pair of ranks has a stream of notices: what a rank does next, or why it does nothing any
/// more. Two notices of every peer are awaited ahead, so that one that leaves need not wait until
/// its last word is read.
class Peers {
 public:
  Peers(std::unique_ptr<Transport> transport, double timeout_seconds);
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;
  Peers(Peers&&) = delete;
  Peers& operator=(Peers&&) = delete;
  ~Peers();

  [[nodiscard]] Transport& transport() { return *transport_; }
  [[nodiscard]] int rank() const { return transport_->rank(); }
  [[nodiscard]] int size() const { return transport_->size(); }

  /// Tells all ranks what this one does and waits until all do the same: a barrier. Costs a notice
  /// of 24 bytes to and from every other rank. Throws Error{comm} on every rank when they differ.
  void agree(const Call& call);
  /// Tells one rank that something is sent to it.
  void announce(const Call& send);
  /// Waits for the announcement of what is received. Throws Error{comm} when it does not match.
  void expect(const Call& receive);

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

  /// Makes waiting and later operations of all reachable ranks throw Error{aborted}. Thread-safe.
  void abort() noexcept { transport_->raise_alarm(); }
  /// Throws when a rank has aborted or is gone, or that becomes known within `seconds`.
  void look_for_culprit(double seconds);
  /// "all_reduce of 4 f32 (operation 3) on rank 0".
  [[nodiscard]] std::string doing() const;

 private:
  struct Notice {
    enum Kind : std::int32_t { call, left, gone };
    Kind kind = call;
    std::int32_t subject = 0;  ///< who is gone
    Call what;
  };
  static_assert(sizeof(Notice) == 24 && std::is_trivially_copyable_v<Notice>);
  struct Peer {
    std::array<Notice, 2> inbox;
    std::array<Message, 2> awaited;  ///< null: has arrived
    std::uint32_t received = 0;
    std::array<Notice, 2> outbox;  ///< two, so that a farewell need not wait for the one before
    std::array<Message, 2> sent;
    std::uint32_t told = 0;
  };

  void await_notice(int peer, std::uint32_t number);
  PendingMessage::State look_at_notice(int peer, std::uint32_t number, Deadline deadline);
  void tell(int peer, const Notice& notice);
  void say_goodbye(const Notice& notice) noexcept;
  void wait_for_goodbye() noexcept;
  Call next_call(int peer);
  template <class Look>
  void wait(Look&& look, int peer);
  void wait(PendingMessage& message, int peer);
  void look_for_farewell(int peer);
  [[noreturn]] void fail_lost(int peer);
  [[noreturn]] void fail_gone(int peer, const std::string& how);
  [[noreturn]] void fail_late(int peer);
  void check_not_aborted() const;
  void check_farewell(int peer, const Notice& notice);

  std::unique_ptr<Transport> transport_;
  double timeout_seconds_;
  std::vector<Peer> peers_;  ///< by rank; the own entry is unused
  std::vector<bool> waiting_for_notice_;
  Call current_{Operation::join, DType::u8, 0, 0};
  std::int64_t operations_ = 0;
  bool failed_ = false;
};

}  // namespace dstrain::comm
