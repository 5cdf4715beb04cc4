#include "runtime/comm/store/tcp_server.h"

#include <algorithm>
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

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "runtime/base/deadline.h"
#include "runtime/base/log.h"
#include "runtime/base/random_bytes.h"
#include "runtime/comm/store/protocol.h"

namespace dstrain::comm {
namespace {

/// Connections that have not proved the token yet; the oldest makes room for the next.
constexpr std::size_t strangers_max = 128;

/// How long the listener rests when no connection can be taken: it would wake the poll at once.
constexpr double rest_seconds = 0.1;

/// The server's side of one connection: buffers and the handshake. The token must outlive it.
class TcpConnection {
 public:
  enum class Health { good, closed, wrong_token, malformed };

  /// Greets. `handshake` is when it must have proved the token.
  TcpConnection(UniqueFd socket, const std::string& token, Deadline handshake);

  [[nodiscard]] int socket() const noexcept { return socket_.get(); }
  [[nodiscard]] bool trusted() const noexcept { return trusted_; }
  [[nodiscard]] bool overdue() const { return !trusted_ && handshake_.passed(); }
  [[nodiscard]] bool has_output() const noexcept { return !output_.empty(); }

  /// Takes in what has arrived, at most `frame_bytes_max` at a time.
  Health read_available();
  /// The next complete request; nothing when there is none yet. `malformed` when it is none.
  std::optional<StoreRequest> next_request(Health& health);
  void answer(std::string_view payload);
  /// Sends as much as the socket takes.
  Health write_available();

  /// The key that this connection waits for; empty: none.
  std::string awaited;

 private:
  Health check_hello();
  void queue(std::span<const std::uint8_t> bytes);

  UniqueFd socket_;
  const std::string* token_;
  Deadline handshake_;
  Nonce nonce_;
  bool trusted_ = false;
  std::vector<std::uint8_t> input_;
  std::vector<std::uint8_t> output_;
};

/// (vector::insert of a span of bytes draws a false warning from GCC 12.)
void append(std::vector<std::uint8_t>& to, std::span<const std::uint8_t> bytes) {
  const std::size_t before = to.size();
  to.resize(before + bytes.size());
  std::copy(bytes.begin(), bytes.end(), to.data() + before);
}

TcpConnection::TcpConnection(UniqueFd socket, const std::string& token, Deadline handshake)
    : socket_(std::move(socket)),
      token_(&token),
      handshake_(handshake),
      nonce_(random_bytes<sizeof(Nonce)>()) {
  const Greeting greeting{.magic = store_magic, .nonce = nonce_};
  queue(bytes_of(greeting));
}

TcpConnection::Health TcpConnection::read_available() {
  // One read a turn: a talkative peer does not keep the others waiting.
  std::array<std::uint8_t, std::size_t{64} * 1024> chunk;
  const std::size_t room = trusted_ ? chunk.size() : sizeof(ClientHello) - input_.size();
  const ssize_t got = ::recv(socket_.get(), chunk.data(), room, 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR ? Health::good : Health::closed;
  if (got == 0) return Health::closed;
  append(input_, std::span(chunk).first(static_cast<std::size_t>(got)));
  if (!trusted_ && input_.size() == sizeof(ClientHello)) return check_hello();
  return Health::good;
}

TcpConnection::Health TcpConnection::check_hello() {
  ClientHello hello;
  std::ranges::copy(input_, bytes_of(hello).begin());
  input_.clear();
  const ServerHello answer = answer_hello(hello, *token_, nonce_);
  trusted_ = answer.accepted == 1;
  queue(bytes_of(answer));
  return trusted_ ? Health::good : Health::wrong_token;
}

std::optional<StoreRequest> TcpConnection::next_request(Health& health) {
  if (!trusted_ || input_.size() < 4) return std::nullopt;
  const std::span<const std::uint8_t> input(input_);
  const std::uint32_t length = decode_length(input.first<4>());
  if (length > frame_bytes_max) {
    health = Health::malformed;
    return std::nullopt;
  }
  if (input.size() < 4 + std::size_t{length}) return std::nullopt;
  std::optional<StoreRequest> request = decode_request(input.subspan(4, length));
  if (!request) health = Health::malformed;
  input_.erase(input_.begin(), input_.begin() + 4 + std::ptrdiff_t{length});
  return request;
}

void TcpConnection::answer(std::string_view payload) {
  queue(encode_frame(payload));
}

void TcpConnection::queue(std::span<const std::uint8_t> bytes) {
  append(output_, bytes);
}

TcpConnection::Health TcpConnection::write_available() {
  if (output_.empty()) return Health::good;
  const ssize_t sent = ::send(socket_.get(), output_.data(), output_.size(), MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN || errno == EINTR ? Health::good : Health::closed;
  output_.erase(output_.begin(), output_.begin() + sent);
  return Health::good;
}

using Health = TcpConnection::Health;

/// What the server's thread works on.
class ServerLoop {
 public:
  struct Sockets {
    UniqueFd listener;
    int stop;
  };
  ServerLoop(Sockets sockets, std::string token, double handshake_seconds)
      : listener_(std::move(sockets.listener)),
        stop_(sockets.stop),
        token_(std::move(token)),
        handshake_seconds_(handshake_seconds) {}

  void run() {
    while (turn()) {
    }
  }

 private:
  using Connections = std::list<TcpConnection>;

  /// False when asked to stop.
  bool turn() {
    std::vector<pollfd> entries{{stop_, POLLIN, 0}, {awaited_listener(), POLLIN, 0}};
    for (const TcpConnection& connection : connections_) {
      const int events = POLLIN | (connection.has_output() ? POLLOUT : 0);
      entries.push_back({connection.socket(), static_cast<short>(events), 0});
    }
    ::poll(entries.data(), entries.size(), poll_ms());
    if (entries[0].revents != 0) return false;
    std::size_t entry = 2;
    for (auto at = connections_.begin(); at != connections_.end(); ++entry) {
      const auto connection = at++;
      Health health = Health::good;
      if (entries[entry].revents != 0) health = serve(*connection);
      if (health != Health::good || connection->overdue()) drop(connection, health);
    }
    if (entries[1].revents != 0) accept_all();
    return true;
  }

  /// The listener, or none (which poll takes) while it rests.
  [[nodiscard]] int awaited_listener() {
    if (rest_ && rest_->passed()) rest_.reset();
    return rest_ ? -1 : listener_.get();
  }

  /// Strangers are looked at now and then, so that none stays for twice its time.
  [[nodiscard]] int poll_ms() const {
    if (rest_) return rest_->at_most(handshake_seconds_).remaining_ms();
    return strangers() == 0 ? -1 : Deadline::after(handshake_seconds_).remaining_ms();
  }

  [[nodiscard]] std::size_t strangers() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(connections_, [](const auto& c) { return !c.trusted(); }));
  }

  void accept_all() {
    while (true) {
      UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket) return after_failed_accept(errno);
      if (strangers() >= strangers_max) drop_oldest_stranger();
      const int on = 1;
      ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      connections_.emplace_back(std::move(socket), token_, Deadline::after(handshake_seconds_));
      connections_.back().write_available();  // the greeting
    }
  }

  /// Without a free descriptor or memory a stranger makes room, or the listener rests.
  void after_failed_accept(int error) {
    const bool none_free =
        error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
    if (none_free && !drop_oldest_stranger()) rest_ = Deadline::after(rest_seconds);
  }

  /// False when there is none.
  bool drop_oldest_stranger() {
    const auto oldest =
        std::ranges::find_if(connections_, [](const auto& c) { return !c.trusted(); });
    if (oldest == connections_.end()) return false;
    connections_.erase(oldest);
    return true;
  }

  void drop(Connections::iterator connection, Health health) {
    if (health == Health::wrong_token && !warned_) {
      warned_ = true;  // once: a stranger must not fill the log
      log_warning("rendezvous: a connection with a wrong token was refused; later ones silently");
    }
    connection->write_available();  // the refusal
    connections_.erase(connection);
  }

  Health serve(TcpConnection& connection) {
    Health health = connection.write_available();
    if (health == Health::good) health = connection.read_available();
    while (health == Health::good) {
      const std::optional<StoreRequest> request = connection.next_request(health);
      if (!request) break;
      handle(connection, *request);
    }
    if (health == Health::good) health = connection.write_available();
    return health;
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
      if (connection.awaited != key || !connection.trusted()) continue;
      connection.awaited.clear();
      connection.answer(values_[key]);
      connection.write_available();
    }
  }

  UniqueFd listener_;
  int stop_;
  std::string token_;
  double handshake_seconds_;
  Connections connections_;
  std::optional<Deadline> rest_;  ///< until when the listener rests
  std::map<std::string, std::string> values_;
  bool warned_ = false;
};

void run_server(ServerLoop& loop) {
  try {
    loop.run();
  } catch (const std::exception& error) {
    // The connections close with the loop: the ranks see that the store is lost.
    log_error(fmt::format("rendezvous server: {}", error.what()));
  }
}

}  // namespace

TcpStoreServer::TcpStoreServer(UniqueFd listener, std::string token, double handshake_seconds)
    : port_(bound_port(listener.get())), stop_(::eventfd(0, EFD_CLOEXEC)) {
  if (!stop_) fail_errno(errno, "eventfd");
  thread_ = std::thread([listener = std::move(listener), stop = stop_.get(),
                         token = std::move(token), handshake_seconds]() mutable {
    ServerLoop loop({std::move(listener), stop}, std::move(token), handshake_seconds);
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
