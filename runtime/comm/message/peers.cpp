#include "runtime/comm/message/peers.h"

#include <chrono>
#include <thread>

#include "runtime/base/error.h"

namespace dstrain::comm {
namespace {

using State = PendingMessage::State;

/// How often a rank that waits for a message checks whether another has failed.
constexpr double message_look_seconds = 0.05;
/// How long the cause may take to arrive after a connection has ended.
constexpr double cause_seconds = 1.5;
constexpr std::chrono::milliseconds pause{1};

}  // namespace

Peers::Peers(std::unique_ptr<Transport> transport,
             std::unique_ptr<ControlGroup> control,
             double timeout_seconds)
    : transport_(std::move(transport)),
      control_(std::move(control)),
      timeout_seconds_(timeout_seconds) {
  DSTRAIN_CHECK(control_->rank() == rank() && control_->size() == size(),
                "rank {} of {} in the control group, {} of {} in the transport", control_->rank(),
                control_->size(), rank(), size());
}

void Peers::begin(const Call& call) {
  current_ = call;
}

void Peers::connect(const std::vector<int>& peers) {
  or_fail_all([&] { transport_->connect(peers); });
}

/// A failure to connect two ranks is a failure of all.
void Peers::or_fail_all(FunctionRef<void()> connect) {
  try {
    connect();
  } catch (const Error& error) {
    fail_all(error.code(), fmt::format("{}: {}", doing(), error.what()));
  }
}

void Peers::agree(const Call& call) {
  begin(call);
  control_->agree(call);
}

void Peers::send(Batch& batch, int peer, const void* from, Bytes bytes) {
  if (bytes == 0) return;
  batch.started_.push_back({peer, transport_->send(peer, from, bytes)});
}

void Peers::receive(Batch& batch, int peer, void* to, Bytes bytes) {
  if (bytes == 0) return;
  batch.started_.push_back({peer, transport_->receive(peer, to, bytes)});
}

void Peers::finish(Batch& batch) {
  for (const Batch::Started& started : batch.started_) wait(*started.message, started.peer);
  batch.started_.clear();
}

void Peers::begin_alone(const Call& call) {
  begin(call);
  check_not_failed();
  Deadline deadline = Deadline::after(timeout_seconds_);
  or_fail_all([&] {
    transport_->connect_pair(call.peer, [&] {
      deadline.skip_standstill(message_look_seconds);
      check_waits(deadline, call.peer);
    });
  });
}

void Peers::send_alone(const Call& call, const void* from, Bytes bytes) {
  begin_alone(call);
  Batch batch;
  send(batch, call.peer, &call, sizeof(call));
  send(batch, call.peer, from, bytes);
  finish(batch);
}

void Peers::receive_alone(const Call& call, void* to, Bytes bytes) {
  begin_alone(call);
  Call sent;
  Batch batch;
  receive(batch, call.peer, &sent, sizeof(sent));
  finish(batch);
  if (sent != Call{Operation::send, call.dtype, rank(), call.numel}) {
    abort();
    fail(ErrorCode::comm, "the ranks disagree: rank {} does {}, rank {} does {}", rank(),
         to_string(call), call.peer, to_string(sent));
  }
  receive(batch, call.peer, to, bytes);
  finish(batch);
}

void Peers::wait(PendingMessage& message, int peer) {
  Deadline deadline = Deadline::after(timeout_seconds_);
  while (true) {
    switch (message.wait(deadline.at_most(message_look_seconds))) {
      case State::done:
        return;
      case State::lost:
        fail_lost(peer);
      case State::pending:
        deadline.skip_standstill(message_look_seconds);
        check_waits(deadline, peer);
    }
  }
}

/// Throws if waiting for `peer` any longer is pointless.
void Peers::check_waits(Deadline deadline, int peer) {
  check_not_failed();
  if (!deadline.passed()) return;
  fail_all(ErrorCode::timeout, fmt::format("{} timed out after {:g} s: waiting for rank {}",
                                           doing(), timeout_seconds_, peer));
}

/// Looks for the cause first: the peer may have failed because another rank did.
void Peers::fail_lost(int peer) {
  const std::string reason = transport_->reason();
  look_for_cause(cause_seconds);
  fail_all(ErrorCode::comm, fmt::format("{}: rank {} is gone{}", doing(), peer,
                                        reason.empty() ? "" : " (" + reason + ")"));
}

void Peers::look_for_cause(double seconds) {
  const Deadline deadline = Deadline::after(seconds);
  do {
    check_not_failed();
    std::this_thread::sleep_for(pause);
  } while (!deadline.passed());
}

void Peers::check_not_failed() {
  if (const auto failure = control_->failure()) throw_failure(*failure, doing());
}

void Peers::fail_all(ErrorCode code, const std::string& why) {
  control_->spread({code, why});
  check_not_failed();
  throw Error(code, why);
}

std::string Peers::doing() const {
  return fmt::format("{} on rank {}", to_string(current_), rank());
}

}  // namespace dstrain::comm
