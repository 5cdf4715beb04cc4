#pragma once
#include <cstddef>
#include <deque>
#include <memory>
#include <string>

#include "runtime/base/unique_handle.h"
#include "runtime/base/units.h"

namespace dstrain::comm {

/// One connection to another rank: what is sent and what is received, each in the order asked for.
/// Nothing here waits. Not thread-safe.
class TcpStream {
 public:
  /// Bytes that are sent or received; their memory stays until they are moved or given up.
  struct Piece {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    std::size_t moved = 0;
    [[nodiscard]] bool done() const { return moved == bytes; }
  };

  TcpStream() = default;
  explicit TcpStream(UniqueFd socket) : socket_(std::move(socket)) {}

  std::shared_ptr<Piece> send(const void* from, Bytes bytes);
  std::shared_ptr<Piece> receive(void* to, Bytes bytes);
  /// What is behind it could no longer be told from it: the stream has ended.
  void give_up(const Piece& piece);

  /// Sends and receives once what goes without waiting.
  void move();
  /// Whether nothing more is moved, for reason().
  [[nodiscard]] bool ended() const { return !reason_.empty(); }
  [[nodiscard]] const std::string& reason() const { return reason_; }

  [[nodiscard]] int socket() const { return socket_.get(); }
  /// Of poll(2): when move() moves something. 0: there is nothing to move.
  [[nodiscard]] short events() const;

 private:
  using Queue = std::deque<std::shared_ptr<Piece>>;
  /// Takes in what send(2) or recv(2) has moved of the front.
  void advance(Queue& queue, ssize_t moved);
  void move_out();
  void move_in();

  UniqueFd socket_;
  Queue outgoing_;
  Queue incoming_;
  std::string reason_;
};

}  // namespace dstrain::comm
