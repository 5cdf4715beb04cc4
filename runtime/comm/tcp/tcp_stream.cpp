#include "runtime/comm/tcp/tcp_stream.h"

#include <cerrno>
#include <system_error>

#include <poll.h>
#include <sys/socket.h>

namespace dstrain::comm {

std::shared_ptr<TcpStream::Piece> TcpStream::send(const void* from, Bytes bytes) {
  auto* const memory = static_cast<std::byte*>(const_cast<void*>(from));  // never written
  outgoing_.push_back(std::make_shared<Piece>(Piece{memory, static_cast<std::size_t>(bytes)}));
  std::shared_ptr<Piece> piece = outgoing_.back();
  if (outgoing_.size() == 1) move_out();
  return piece;
}

std::shared_ptr<TcpStream::Piece> TcpStream::receive(void* to, Bytes bytes) {
  incoming_.push_back(
      std::make_shared<Piece>(Piece{static_cast<std::byte*>(to), static_cast<std::size_t>(bytes)}));
  return incoming_.back();
}

void TcpStream::give_up(const Piece& piece) {
  if (piece.done()) return;
  if (reason_.empty()) reason_ = "a message was given up";
  outgoing_.clear();
  incoming_.clear();
}

short TcpStream::events() const {
  if (ended()) return 0;
  return static_cast<short>((outgoing_.empty() ? 0 : POLLOUT) | (incoming_.empty() ? 0 : POLLIN));
}

void TcpStream::move() {
  move_out();
  move_in();
}

void TcpStream::move_out() {
  if (ended() || outgoing_.empty()) return;
  const Piece& piece = *outgoing_.front();
  advance(outgoing_, ::send(socket_.get(), piece.memory + piece.moved, piece.bytes - piece.moved,
                            MSG_NOSIGNAL));
}

void TcpStream::move_in() {
  if (ended() || incoming_.empty()) return;
  const Piece& piece = *incoming_.front();
  advance(incoming_,
          ::recv(socket_.get(), piece.memory + piece.moved, piece.bytes - piece.moved, 0));
}

void TcpStream::advance(Queue& queue, ssize_t moved) {
  if (moved > 0) {
    queue.front()->moved += static_cast<std::size_t>(moved);
    if (queue.front()->done()) queue.pop_front();
  } else if (moved == 0) {
    reason_ = "the connection was closed";
  } else if (errno != EAGAIN && errno != EINTR) {
    reason_ = std::generic_category().message(errno);
  }
}

}  // namespace dstrain::comm
