#pragma once
#include <cstddef>
#include <deque>
#include <memory>
#include <string>

#include "runtime/base/unique_handle.h"
#include "runtime/base/units.h"

namespace dstrain::comm {

/// One connection to another rank, with a queue of sends and one of receives. No function waits.
/// Not thread-safe.
class TcpStream {
 public:
  /// Bytes to send or receive; their memory must stay valid until they are moved or cancelled.
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
  /// Ends the stream, because the bytes after `piece` could not be told from it.
  void give_up(const Piece& piece);

  /// Sends and receives once, as much as is possible without waiting.
  void move();
  /// Whether the stream has ended; see reason().
  [[nodiscard]] bool ended() const { return !reason_.empty(); }
  [[nodiscard]] const std::string& reason() const { return reason_; }

  [[nodiscard]] int socket() const { return socket_.get(); }
  /// The poll(2) events for which move() can do something. 0: nothing to move.
  [[nodiscard]] short events() const;

 private:
  using Queue = std::deque<std::shared_ptr<Piece>>;
  /// Removes the bytes that send(2) or recv(2) has moved from the front.
  void advance(Queue& queue, ssize_t moved);
  void move_out();
  void move_in();

  UniqueFd socket_;
  Queue outgoing_;
  Queue incoming_;
  std::string reason_;
};

}  // namespace dstrain::comm
