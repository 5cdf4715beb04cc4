#include "runtime/comm/store/tcp_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <exception>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "runtime/base/log.h"
#include "runtime/comm/store/protocol.h"
#include "runtime/os/token_listener.h"

namespace dstrain::comm {
namespace {

/// The server's side of one connection: buffers.
class TcpConnection {
 public:
  explicit TcpConnection(UniqueFd socket) : socket_(std::move(socket)) {}

  [[nodiscard]] int socket() const noexcept { return socket_.get(); }
  [[nodiscard]] bool has_output() const noexcept { return !output_.empty(); }

  /// Reads the bytes that have arrived, at most `frame_bytes_max` at a time. False: the peer has
  /// gone.
  bool read_available();
  /// Returns the next complete request; nothing if there is none yet, or if `malformed` became
  /// true.
  std::optional<StoreRequest> next_request(bool& malformed);
  void answer(std::string_view payload);
  /// Sends as much as the socket accepts. False: the peer has gone.
  bool write_available();

  /// The key that this connection waits for; empty: none.
  std::string awaited;

 private:
  UniqueFd socket_;
  std::vector<std::uint8_t> input_;
  std::vector<std::uint8_t> output_;
};

/// (vector::insert of a span of bytes causes a false warning in GCC 12.)
void append(std::vector<std::uint8_t>& to, std::span<const std::uint8_t> bytes) {
  const std::size_t before = to.size();
  to.resize(before + bytes.size());
  std::copy(bytes.begin(), bytes.end(), to.data() + before);
}

bool TcpConnection::read_available() {
  // One read per turn, so that a busy peer does not keep the others waiting.
  std::array<std::uint8_t, std::size_t{64} * 1024> chunk;
  const ssize_t got = ::recv(socket_.get(), chunk.data(), chunk.size(), 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  append(input_, std::span(chunk).first(static_cast<std::size_t>(got)));
  return true;
}

std::optional<StoreRequest> TcpConnection::next_request(bool& malformed) {
  if (input_.size() < 4) return std::nullopt;
  const std::span<const std::uint8_t> input(input_);
  const std::uint32_t length = decode_length(input.first<4>());
  if (length > frame_bytes_max) {
    malformed = true;
    return std::nullopt;
  }
  if (input.size() < 4 + std::size_t{length}) return std::nullopt;
  std::optional<StoreRequest> request = decode_request(input.subspan(4, length));
  malformed = !request;
  input_.erase(input_.begin(), input_.begin() + 4 + std::ptrdiff_t{length});
  return request;
}

void TcpConnection::answer(std::string_view payload) {
  append(output_, encode_frame(payload));
}

bool TcpConnection::write_available() {
  if (output_.empty()) return true;
  const ssize_t sent = ::send(socket_.get(), output_.data(), output_.size(), MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN || errno == EINTR;
  output_.erase(output_.begin(), output_.begin() + sent);
  return true;
}

/// The state of the server's thread.
class ServerLoop {
 public:
  ServerLoop(TokenListener::Settings settings, int stop)
      : listener_(std::move(settings)), stop_(stop) {}

  void run() {
    while (turn()) {
    }
  }

 private:
  /// Returns false when asked to stop.
  bool turn() {
    std::vector<pollfd> entries{{stop_, POLLIN, 0}};
    for (const TcpConnection& connection : connections_) {
      const int events = POLLIN | (connection.has_output() ? POLLOUT : 0);
      entries.push_back({connection.socket(), static_cast<short>(events), 0});
    }
    const std::size_t own = entries.size();
    listener_.add_polls(entries);
    ::poll(entries.data(), entries.size(), listener_.poll_ms());
    if (entries[0].revents != 0) return false;
    std::size_t entry = 1;
    for (auto at = connections_.begin(); at != connections_.end(); ++entry) {
      const auto connection = at++;
      if (entries[entry].revents == 0 || serve(*connection)) continue;
      connections_.erase(connection);
    }
    for (auto& [number, socket] : listener_.advance(std::span(entries).subspan(own))) {
      connections_.emplace_back(std::move(socket));
    }
    return true;
  }

  /// Returns false if the connection must be closed.
  bool serve(TcpConnection& connection) {
    if (!connection.write_available() || !connection.read_available()) return false;
    bool malformed = false;
    while (const auto request = connection.next_request(malformed)) handle(connection, *request);
    return !malformed && connection.write_available();
  }

  void handle(TcpConnection& connection, const StoreRequest& request) {
    switch (request.verb) {
      case Verb::set:
        values_[request.key] = request.value;
        connection.answer({});
        tell_waiting(request.key);
        break;
      case Verb::add: {
        std::int64_t delta = 0;
        std::from_chars(request.value.data(), request.value.data() + request.value.size(), delta);
        add_to_counter(values_[request.key], delta);
        connection.answer(values_[request.key]);
        tell_waiting(request.key);
        break;
      }
      case Verb::gather: {
        connection.awaited = request.key;
        GatheredValues& values = gathered_[request.key];
        if (!values.take(request.value)) break;
        values_[request.key] = std::move(values.packed);
        gathered_.erase(request.key);
        tell_waiting(request.key);
        break;
      }
      case Verb::get:
        if (const auto found = values_.find(request.key); found != values_.end()) {
          connection.answer(found->second);
        } else {
          connection.awaited = request.key;
        }
        break;
    }
  }

  void tell_waiting(const std::string& key) {
    for (TcpConnection& connection : connections_) {
      if (connection.awaited != key) continue;
      connection.awaited.clear();
      connection.answer(values_[key]);
      connection.write_available();
    }
  }

  TokenListener listener_;
  int stop_;
  std::list<TcpConnection> connections_;
  std::map<std::string, std::string> values_;
  std::map<std::string, GatheredValues> gathered_;  ///< groups with missing values
};

void run_server(ServerLoop& loop) {
  try {
    loop.run();
  } catch (const std::exception& error) {
    // The connections close with the loop, so the ranks see that the store is lost.
    log_error(fmt::format("rendezvous server: {}", error.what()));
  }
}

}  // namespace

TcpStoreServer::TcpStoreServer(UniqueFd listener, Guard guard)
    : port_(bound_port(listener.get())), stop_(::eventfd(0, EFD_CLOEXEC)) {
  if (!stop_) fail_errno(errno, "eventfd");
  TokenListener::Settings settings{.listener = std::move(listener),
                                   .magic = store_magic,
                                   .token = std::move(guard.token),
                                   .name = "rendezvous",
                                   .own_user_only = guard.own_user_only,
                                   .proof_seconds = guard.proof_seconds};
  thread_ = std::thread([settings = std::move(settings), stop = stop_.get()]() mutable {
    ServerLoop loop(std::move(settings), stop);
    run_server(loop);
  });
}

TcpStoreServer::~TcpStoreServer() {
  const std::uint64_t one = 1;
  if (::write(stop_.get(), &one, sizeof(one)) != sizeof(one)) {
    log_warning("rendezvous server: cannot ask the thread to stop");
  }
  thread_.join();
}

}  // namespace dstrain::comm
