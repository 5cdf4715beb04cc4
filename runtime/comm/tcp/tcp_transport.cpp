#include "runtime/comm/tcp/tcp_transport.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>

#include "runtime/base/error.h"
#include "runtime/comm/control/tree_control_group.h"
#include "runtime/comm/message/message_communicator.h"
#include "runtime/comm/tcp/tcp_stream.h"

namespace dstrain::comm {
namespace {

using State = PendingMessage::State;

}  // namespace

class TcpTransport final : public Transport {
 public:
  TcpTransport(Store& store, TcpOptions options)
      : store_(store),
        options_(std::move(options)),
        streams_(static_cast<std::size_t>(options_.size)) {}

  [[nodiscard]] int rank() const override { return options_.rank; }
  [[nodiscard]] int size() const override { return options_.size; }
  void connect(const std::vector<int>& peers) override;
  void connect_pair(int peer, FunctionRef<void()> look) override;
  Message send(int peer, const void* from, Bytes bytes) override;
  Message receive(int peer, void* to, Bytes bytes) override;
  [[nodiscard]] std::string reason() const override { return reason_; }
  [[nodiscard]] std::int64_t next_group() const override { return 0; }
  std::unique_ptr<Transport> split(const Subgroup& subgroup) override;

 private:
  class TcpMessage;

  [[nodiscard]] bool is_connected(int peer) const {
    return streams_[static_cast<std::size_t>(peer)].socket() >= 0;
  }
  void add(int peer, UniqueFd socket);
  TcpStream& stream(int peer);
  State wait(const TcpStream::Piece& piece, TcpStream& stream, Deadline deadline);
  void move_all(Deadline deadline);

  Store& store_;
  TcpOptions options_;
  std::vector<TcpStream> streams_;  ///< by rank; ranks that are not connected have no socket
  std::vector<int> connected_;      ///< the connected ranks
  int meshes_ = 0;                  ///< number of connect() calls
  std::string reason_;
  std::vector<pollfd> polls_;
};

class TcpTransport::TcpMessage final : public PendingMessage {
 public:
  TcpMessage(TcpTransport& transport, TcpStream& stream, std::shared_ptr<TcpStream::Piece> piece)
      : transport_(transport), stream_(stream), piece_(std::move(piece)) {}
  TcpMessage(const TcpMessage&) = delete;
  TcpMessage& operator=(const TcpMessage&) = delete;
  TcpMessage(TcpMessage&&) = delete;
  TcpMessage& operator=(TcpMessage&&) = delete;
  ~TcpMessage() override { stream_.give_up(*piece_); }

  State wait(Deadline deadline) override { return transport_.wait(*piece_, stream_, deadline); }

 private:
  TcpTransport& transport_;
  TcpStream& stream_;
  std::shared_ptr<TcpStream::Piece> piece_;
};

void TcpTransport::connect(const std::vector<int>& peers) {
  std::vector<int> missing;
  std::ranges::copy_if(peers, std::back_inserter(missing),
                       [&](int peer) { return !is_connected(peer); });
  TcpOptions options = options_;
  options.name += fmt::format("/mesh {}", meshes_++);
  TcpMesh mesh = connect_mesh(store_, options, {missing, 1});
  for (const int peer : missing) add(peer, std::move(mesh[static_cast<std::size_t>(peer)].front()));
}

void TcpTransport::connect_pair(int peer, FunctionRef<void()> look) {
  if (!is_connected(peer)) add(peer, comm::connect_pair(store_, options_, peer, look));
}

void TcpTransport::add(int peer, UniqueFd socket) {
  streams_[static_cast<std::size_t>(peer)] = TcpStream(std::move(socket));
  connected_.push_back(peer);
}

TcpStream& TcpTransport::stream(int peer) {
  DSTRAIN_CHECK(is_connected(peer), "ranks {} and {} are not connected", rank(), peer);
  return streams_[static_cast<std::size_t>(peer)];
}

Message TcpTransport::send(int peer, const void* from, Bytes bytes) {
  TcpStream& to = stream(peer);
  return std::make_unique<TcpMessage>(*this, to, to.send(from, bytes));
}

Message TcpTransport::receive(int peer, void* to, Bytes bytes) {
  TcpStream& from = stream(peer);
  return std::make_unique<TcpMessage>(*this, from, from.receive(to, bytes));
}

State TcpTransport::wait(const TcpStream::Piece& piece, TcpStream& stream, Deadline deadline) {
  stream.move();
  while (!piece.done()) {
    if (stream.ended()) {
      if (reason_.empty()) reason_ = stream.reason();
      return State::lost;
    }
    if (deadline.passed()) return State::pending;
    move_all(deadline);
  }
  return State::done;
}

/// Waits until something can be moved or until `deadline`, and moves it.
void TcpTransport::move_all(Deadline deadline) {
  polls_.clear();
  for (const int peer : connected_) {
    const TcpStream& with = stream(peer);
    const short events = with.events();
    polls_.push_back({events == 0 ? -1 : with.socket(), events, 0});
  }
  if (::poll(polls_.data(), polls_.size(), deadline.remaining_ms()) <= 0) return;
  for (std::size_t i = 0; i < connected_.size(); ++i) {
    if (polls_[i].revents != 0) stream(connected_[i]).move();
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
  TreeControlGroup::Options control{.tcp = options};
  control.tcp.name += "/control";
  MessageCommunicator::Lines lines{make_tcp_transport(store, options),
                                   std::make_unique<TreeControlGroup>(store, std::move(control))};
  return std::make_unique<MessageCommunicator>(std::move(lines), options.timeout_seconds);
}

}  // namespace dstrain::comm
