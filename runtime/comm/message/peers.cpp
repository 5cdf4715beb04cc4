#include "runtime/comm/message/peers.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/comm/group_barrier.h"

namespace dstrain::comm {
namespace {

using State = PendingMessage::State;

/// How long a rank that leaves waits until its last word is on its way.
constexpr double goodbye_seconds = 1.0;
/// No transport tells of a lost peer unless it is asked.
constexpr std::chrono::milliseconds look_interval{1};

}  // namespace

Peers::Peers(std::unique_ptr<Transport> transport, double timeout_seconds)
    : transport_(std::move(transport)),
      timeout_seconds_(timeout_seconds),
      peers_(static_cast<std::size_t>(transport_->size())),
      waiting_for_notice_(peers_.size(), false) {
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    await_notice(peer, 0);
    await_notice(peer, 1);
  }
}

Peers::~Peers() {
  // A rank that fails does not say that it leaves: its peers see the connection end, and the
  // culprit is named and not those who missed it.
  if (failed_ || std::uncaught_exceptions() > 0 || transport_->alarm_raised_by() >= 0) return;
  say_goodbye({Notice::left, rank(), {}});
  wait_for_goodbye();
}

void Peers::await_notice(int peer, std::uint32_t number) {
  Peer& other = peers_[static_cast<std::size_t>(peer)];
  other.awaited[number % 2] =
      transport_->receive(peer, Transport::Channel::control, &other.inbox[number % 2],
                          static_cast<Bytes>(sizeof(Notice)));
}

State Peers::look_at_notice(int peer, std::uint32_t number, Deadline deadline) {
  Message& awaited = peers_[static_cast<std::size_t>(peer)].awaited[number % 2];
  if (!awaited) return State::done;
  const State state = awaited->wait(deadline);
  if (state == State::done) awaited.reset();
  return state;
}

/// The notice before the last may still be on its way: then the peer is far behind.
void Peers::tell(int peer, const Notice& notice) {
  Peer& other = peers_[static_cast<std::size_t>(peer)];
  const std::uint32_t slot = other.told % 2;
  if (other.sent[slot]) wait(*other.sent[slot], peer);
  other.outbox[slot] = notice;
  other.sent[slot] = transport_->send(peer, Transport::Channel::control, &other.outbox[slot],
                                      static_cast<Bytes>(sizeof(Notice)));
  ++other.told;
}

/// To everyone who is still there and listens.
void Peers::say_goodbye(const Notice& notice) noexcept {
  for (int peer = 0; peer < size(); ++peer) {
    Peer& other = peers_[static_cast<std::size_t>(peer)];
    if (peer == rank()) continue;
    const std::uint32_t slot = other.told % 2;
    try {
      const Deadline deadline = Deadline::after(goodbye_seconds / 10);
      if (other.sent[slot] && other.sent[slot]->wait(deadline) != State::done) continue;
      other.outbox[slot] = notice;
      other.sent[slot] = transport_->send(peer, Transport::Channel::control, &other.outbox[slot],
                                          static_cast<Bytes>(sizeof(Notice)));
      ++other.told;
    } catch (const std::exception&) {
      other.sent[slot].reset();
    }
  }
}

/// Until it is on its way to all who are still there.
void Peers::wait_for_goodbye() noexcept {
  const Deadline deadline = Deadline::after(goodbye_seconds);
  for (Peer& peer : peers_) {
    const Message& last_word = peer.sent[(peer.told + 1) % 2];
    try {
      while (last_word && !deadline.passed() && last_word->wait(deadline) == State::pending) {
      }
    } catch (const std::exception&) {  // the peer has gone first
    }
  }
}

/// What the peer does next.
Call Peers::next_call(int peer) {
  Peer& other = peers_[static_cast<std::size_t>(peer)];
  const std::uint32_t number = other.received;
  wait([&](Deadline deadline) { return look_at_notice(peer, number, deadline); }, peer);
  const Notice notice = other.inbox[number % 2];
  check_farewell(peer, notice);
  ++other.received;
  await_notice(peer, number + 2);
  return notice.what;
}

void Peers::agree(const Call& call) {
  current_ = call;
  ++operations_;
  check_not_aborted();
  for (int i = 1; i < size(); ++i) tell((rank() + i) % size(), {Notice::call, 0, call});
  waiting_for_notice_.assign(peers_.size(), true);
  waiting_for_notice_[static_cast<std::size_t>(rank())] = false;
  std::vector<Call> others(peers_.size(), call);
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    others[static_cast<std::size_t>(peer)] = next_call(peer);
    waiting_for_notice_[static_cast<std::size_t>(peer)] = false;
  }
  const auto other = std::ranges::find_if(others, [&](const Call& c) { return c != call; });
  if (other == others.end()) return;
  fail(ErrorCode::comm, "the ranks disagree in operation {}: rank {} does {}, rank {} does {}",
       operations_, rank(), to_string(call), other - others.begin(), to_string(*other));
}

void Peers::announce(const Call& send) {
  current_ = send;
  ++operations_;
  check_not_aborted();
  tell(send.peer, {Notice::call, 0, send});
}

void Peers::expect(const Call& receive) {
  current_ = receive;
  ++operations_;
  check_not_aborted();
  const Call sent = next_call(receive.peer);
  if (sent == Call{Operation::send, receive.dtype, rank(), receive.numel}) return;
  fail(ErrorCode::comm, "the ranks disagree: rank {} does {}, rank {} does {}", rank(),
       to_string(receive), receive.peer, to_string(sent));
}

void Peers::send(Batch& batch, int peer, const void* from, Bytes bytes) {
  if (bytes == 0) return;
  batch.started_.push_back({peer, transport_->send(peer, Transport::Channel::data, from, bytes)});
}

void Peers::receive(Batch& batch, int peer, void* to, Bytes bytes) {
  if (bytes == 0) return;
  batch.started_.push_back({peer, transport_->receive(peer, Transport::Channel::data, to, bytes)});
}

void Peers::finish(Batch& batch) {
  for (const Batch::Started& started : batch.started_) wait(*started.message, started.peer);
  batch.started_.clear();
}

template <class Look>
void Peers::wait(Look&& look, int peer) {
  const Deadline deadline = Deadline::after(timeout_seconds_);
  while (true) {
    switch (look(deadline)) {
      case State::done:
        return;
      case State::lost:
        fail_lost(peer);
      case State::alarmed:
        check_not_aborted();
        break;
      case State::pending:
        if (deadline.passed()) fail_late(peer);
        look_for_farewell(peer);
    }
  }
}

void Peers::wait(PendingMessage& message, int peer) {
  wait([&](Deadline deadline) { return message.wait(deadline); }, peer);
}

/// The peer may have said why it does not come, after a notice of what it would do.
void Peers::look_for_farewell(int peer) {
  const Peer& other = peers_[static_cast<std::size_t>(peer)];
  for (std::uint32_t number = other.received; number < other.received + 2; ++number) {
    if (look_at_notice(peer, number, Deadline::after(0)) != State::done) return;
    check_farewell(peer, other.inbox[number % 2]);
  }
}

void Peers::fail_lost(int peer) {
  const std::string reason = transport_->reason();
  check_not_aborted();
  look_for_farewell(peer);
  fail_gone(peer, reason.empty() ? "" : fmt::format(" ({})", reason));
}

void Peers::look_for_culprit(double seconds) {
  const Deadline deadline = Deadline::after(seconds);
  do {
    check_not_aborted();
    for (int peer = 0; peer < size(); ++peer) {
      const Peer& other = peers_[static_cast<std::size_t>(peer)];
      const Message& awaited = other.awaited[other.received % 2];
      if (peer != rank() && awaited && awaited->is_lost()) fail_lost(peer);
    }
    std::this_thread::sleep_for(look_interval);
  } while (!deadline.passed());
}

/// The others hear of it too: they may wait for this rank, which fails now. Before its messages
/// under way are given up, behind which the goodbye may be queued.
void Peers::fail_gone(int peer, const std::string& how) {
  failed_ = true;
  say_goodbye({Notice::gone, peer, {}});
  wait_for_goodbye();
  fail(ErrorCode::comm, "{}: rank {} is gone{}", doing(), peer, how);
}

void Peers::check_farewell(int peer, const Notice& notice) {
  if (notice.kind == Notice::left) {
    failed_ = true;
    fail(ErrorCode::comm, "{}: rank {} has left the group", doing(), peer);
  }
  if (notice.kind == Notice::gone) {
    fail_gone(notice.subject, fmt::format(", says rank {}", peer));
  }
}

void Peers::fail_late(int peer) {
  failed_ = true;
  std::vector<int> missing{peer};
  if (waiting_for_notice_[static_cast<std::size_t>(peer)]) {
    for (int other = peer + 1; other < size(); ++other) {
      const Peer& it = peers_[static_cast<std::size_t>(other)];
      if (other == rank()) continue;
      if (look_at_notice(other, it.received, Deadline::after(0)) != State::done) {
        missing.push_back(other);
      }
    }
  }
  fail(ErrorCode::timeout, "{} timed out after {:g} s: waiting for {}", doing(), timeout_seconds_,
       name_ranks(missing));
}

void Peers::check_not_aborted() const {
  const int by = transport_->alarm_raised_by();
  if (by >= 0) fail(ErrorCode::aborted, "{}: aborted by rank {}", doing(), by);
}

std::string Peers::doing() const {
  return fmt::format("{} (operation {}) on rank {}", to_string(current_), operations_, rank());
}

}  // namespace dstrain::comm
