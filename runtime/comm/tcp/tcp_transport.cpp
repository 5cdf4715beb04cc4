#include "runtime/comm/tcp/tcp_transport.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "runtime/base/error.h"
#include "runtime/comm/message/message_communicator.h"
#include "runtime/comm/tcp/tcp_stream.h"

namespace dstrain::comm {
namespace {

using State = PendingMessage::State;

/// What the connections between two ranks are for.
enum Line : std::size_t { control_line, data_line, alarm_line, line_count };

std::vector<int> all_but(int rank, int size) {
  std::vector<int> others;
  for (int other = 0; other < size; ++other) {
    if (other != rank) others.push_back(other);
  }
  return others;
}

}  // namespace

class TcpTransport final : public Transport {
 public:
  TcpTransport(Store& store, TcpOptions options);
  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;
  TcpTransport(TcpTransport&&) = delete;
  TcpTransport& operator=(TcpTransport&&) = delete;
  ~TcpTransport() override = default;

  [[nodiscard]] int rank() const override { return options_.rank; }
  [[nodiscard]] int size() const override { return options_.size; }
  Message send(int peer, Channel channel, const void* from, Bytes bytes) override;
  Message receive(int peer, Channel channel, void* to, Bytes bytes) override;
  void raise_alarm() noexcept override;
  [[nodiscard]] int alarm_raised_by() const override { return alarm_raised_by_; }
  [[nodiscard]] std::string reason() const override { return reason_; }
  [[nodiscard]] std::int64_t next_group() const override { return 0; }
  std::unique_ptr<Transport> split(const Subgroup& subgroup) override;

 private:
  class TcpMessage;
  /// Nothing but one byte comes on a line for alarms: the alarm. Its end is that of the peer.
  struct Peer {
    std::array<TcpStream, 2> streams;  ///< by channel
    UniqueFd alarm;
    bool gone = false;
  };

  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  TcpStream& stream(int rank, Channel channel) {
    return peer(rank).streams[static_cast<std::size_t>(channel)];
  }
  State wait(const TcpStream::Piece& piece, int from, TcpStream& stream, Deadline deadline);
  bool is_lost(int rank);
  void move_all(Deadline deadline);
  void read_alarm(int rank);

  Store& store_;
  TcpOptions options_;
  UniqueFd wake_;            ///< an eventfd: the alarm was raised here
  std::vector<Peer> peers_;  ///< by rank; the own has no sockets
  std::string reason_;
  std::atomic<int> alarm_raised_by_{-1};
  std::vector<pollfd> polls_;
};

class TcpTransport::TcpMessage final : public PendingMessage {
 public:
  TcpMessage(TcpTransport& transport,
             int peer,
             TcpStream& stream,
             std::shared_ptr<TcpStream::Piece> piece)
      : transport_(transport), peer_(peer), stream_(stream), piece_(std::move(piece)) {}
  TcpMessage(const TcpMessage&) = delete;
  TcpMessage& operator=(const TcpMessage&) = delete;
  TcpMessage(TcpMessage&&) = delete;
  TcpMessage& operator=(TcpMessage&&) = delete;
  ~TcpMessage() override { stream_.give_up(*piece_); }

  State wait(Deadline deadline) override {
    return transport_.wait(*piece_, peer_, stream_, deadline);
  }
  bool is_lost() override { return transport_.is_lost(peer_); }

 private:
  TcpTransport& transport_;
  int peer_;
  TcpStream& stream_;
  std::shared_ptr<TcpStream::Piece> piece_;
};

TcpTransport::TcpTransport(Store& store, TcpOptions options)
    : store_(store),
      options_(std::move(options)),
      wake_(::eventfd(0, EFD_CLOEXEC)),
      peers_(static_cast<std::size_t>(options_.size)) {
  if (!wake_) fail_errno(errno, "eventfd");
  const std::vector<int> others = all_but(options_.rank, options_.size);
  TcpMesh mesh = connect_mesh(store_, options_, {others, line_count});
  for (const int rank : others) {
    std::vector<UniqueFd>& sockets = mesh[static_cast<std::size_t>(rank)];
    stream(rank, Channel::control) = TcpStream(std::move(sockets[control_line]));
    stream(rank, Channel::data) = TcpStream(std::move(sockets[data_line]));
    peer(rank).alarm = std::move(sockets[alarm_line]);
  }
}

Message TcpTransport::send(int peer, Channel channel, const void* from, Bytes bytes) {
  TcpStream& to = stream(peer, channel);
  return std::make_unique<TcpMessage>(*this, peer, to, to.send(from, bytes));
}

Message TcpTransport::receive(int peer, Channel channel, void* to, Bytes bytes) {
  TcpStream& from = stream(peer, channel);
  return std::make_unique<TcpMessage>(*this, peer, from, from.receive(to, bytes));
}

/// Returns early when the peer says something meanwhile: it may be why the message does not come.
State TcpTransport::wait(const TcpStream::Piece& piece,
                         int from,
                         TcpStream& stream,
                         Deadline deadline) {
  const TcpStream& control = this->stream(from, Channel::control);
  const std::uint64_t heard = control.received();
  stream.move();
  while (!piece.done()) {
    if (alarm_raised_by_ >= 0) return State::alarmed;
    if (stream.ended()) {
      if (reason_.empty()) reason_ = stream.reason();
      return State::lost;
    }
    if (deadline.passed() || control.received() != heard) return State::pending;
    move_all(deadline);
  }
  return State::done;
}

bool TcpTransport::is_lost(int rank) {
  move_all(Deadline::after(0));
  const TcpStream& control = stream(rank, Channel::control);
  if (control.ended() && reason_.empty()) reason_ = control.reason();
  return control.ended() || peer(rank).gone;
}

/// Waits until something can be moved or `deadline`, and moves it.
void TcpTransport::move_all(Deadline deadline) {
  polls_.assign(1, {alarm_raised_by_ >= 0 ? -1 : wake_.get(), POLLIN, 0});
  for (const Peer& peer : peers_) {
    polls_.push_back({peer.gone ? -1 : peer.alarm.get(), POLLIN, 0});
    for (const TcpStream& stream : peer.streams) {
      const short events = stream.events();
      polls_.push_back({events == 0 ? -1 : stream.socket(), events, 0});
    }
  }
  if (::poll(polls_.data(), polls_.size(), deadline.remaining_ms()) <= 0) return;
  auto entry = polls_.begin() + 1;
  for (int rank = 0; rank < size(); ++rank) {
    if ((entry++)->revents != 0) read_alarm(rank);
    for (TcpStream& stream : peer(rank).streams) {
      if ((entry++)->revents != 0) stream.move();
    }
  }
}

void TcpTransport::read_alarm(int rank) {
  char byte = 0;
  const ssize_t got = ::recv(peer(rank).alarm.get(), &byte, 1, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  peer(rank).gone = got <= 0;
  int nobody = -1;
  if (got > 0) alarm_raised_by_.compare_exchange_strong(nobody, rank);
}

/// The sockets for alarms stay the same from first to last: no lock is needed.
void TcpTransport::raise_alarm() noexcept {
  int nobody = -1;
  if (!alarm_raised_by_.compare_exchange_strong(nobody, rank())) return;
  ::eventfd_write(wake_.get(), 1);
  const char byte = '!';
  for (const Peer& peer : peers_) {
    if (peer.alarm) ::send(peer.alarm.get(), &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

std::unique_ptr<Transport> TcpTransport::split(const Subgroup& subgroup) {
  TcpOptions options = options_;
  options.rank = subgroup.rank;
  options.size = static_cast<int>(subgroup.members.size());
  options.name += fmt::format("/{}.{}", subgroup.split, subgroup.members.front());
  return std::make_unique<TcpTransport>(store_, std::move(options));
}

std::unique_ptr<Transport> make_tcp_transport(Store& store, const TcpOptions& options) {
  return std::make_unique<TcpTransport>(store, options);
}

std::unique_ptr<Communicator> make_tcp_communicator(Store& store, const TcpOptions& options) {
  return std::make_unique<MessageCommunicator>(make_tcp_transport(store, options),
                                               options.timeout_seconds);
}

}  // namespace dstrain::comm
