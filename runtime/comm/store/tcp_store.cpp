#include "runtime/comm/store/tcp_store.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/comm/packed_texts.h"
#include "runtime/comm/store/protocol.h"
#include "runtime/os/tcp_peer.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::comm {
namespace {

/// How long one handshake with a server may take, if it is at one port, and if it is at one of
/// several, of which others may be silent. A server that drops us is tried again.
constexpr double handshake_seconds_max = 10;
constexpr double port_seconds_max = 1;
constexpr double retry_seconds_min = 0.01;
constexpr double search_silent_seconds = 10;  ///< a log line then says which rank is missing
constexpr double retry_seconds_max = 0.25;

struct Search {
  Endpoint first;
  int ports = 1;
  std::string token;
  bool own_user_only = false;  ///< the token is not secret
};

/// The result of one attempt to reach the server.
struct Attempt {
  UniqueFd socket;      ///< if the server accepted
  std::string failure;  ///< otherwise the reason
  bool other = false;   ///< a different server is there
};

Attempt try_to_reach(const Endpoint& endpoint, const Search& search, Deadline& deadline) {
  Result<UniqueFd> socket = connect_tcp(endpoint, deadline);
  if (!socket.ok()) return {{}, socket.error()};
  const TokenProof proof{.magic = store_magic, .token = search.token};
  switch (prove_token(socket.value().get(), proof, deadline)) {
    case TokenAnswer::accepted:
      if (!search.own_user_only || is_own_tcp_peer(socket.value().get())) {
        return {std::move(socket.value()), {}};
      }
      return {
          {},
          fmt::format("the server at {} belongs to another user, according to the kernel: choose "
                      "another port, or give all ranks the same {}",
                      to_string(endpoint), env::token),
          true};
    case TokenAnswer::broken:
      return {{}, "it does not answer"};
    case TokenAnswer::stranger:
      return {{},
              fmt::format("the server at {} is not a dstrain rendezvous: choose another port",
                          to_string(endpoint)),
              true};
    case TokenAnswer::other_token:
      break;
  }
  return {{},
          fmt::format("the rendezvous at {} has another token: it is another job's, or "
                      "DSTRAIN_TOKEN differs between the ranks",
                      to_string(endpoint)),
          true};
}

/// Returns this end of the connection to `there`.
std::string own_side(const Endpoint& there) {
  const Result<std::string> address = local_address_towards(there);
  return address.ok() ? address.value() : "this machine";
}

/// The port of the server, and the connection to it.
struct Found {
  int port = 0;
  UniqueFd socket;
};

/// Tries again until the server is there or `deadline` passes, and proves the token. Throws
/// Error{timeout}, or Error{comm} if another program uses the only port.
Found find_server(const Search& search, Deadline& deadline) {
  const double seconds = std::round(deadline.remaining_seconds() * 1e3) / 1e3;  // for the message
  double wait_seconds = retry_seconds_min;
  const Deadline silent = Deadline::after(search_silent_seconds);
  bool told = false;
  std::string failure;
  while (true) {
    for (int i = 0; i < search.ports; ++i) {
      const Endpoint endpoint{search.first.host, search.first.port + i};
      const double most = search.ports > 1 ? port_seconds_max : handshake_seconds_max;
      deadline.skip_standstill();
      Deadline patience = deadline.at_most(most);
      Attempt attempt = try_to_reach(endpoint, search, patience);
      patience.skip_standstill();
      deadline.put_off(patience.standstill_seconds());
      if (attempt.socket) return {endpoint.port, std::move(attempt.socket)};
      if (attempt.other && search.ports == 1) fail(ErrorCode::comm, "{}", attempt.failure);
      failure = std::move(attempt.failure);
    }
    deadline.skip_standstill();
    if (deadline.passed()) {
      fail(ErrorCode::timeout,
           "rendezvous timed out after {:g} s at {}: waiting for rank 0 ({}); "
           "see that it is started and that {} reaches this address and port, or raise --timeout",
           seconds, to_string(search.first), failure, own_side(search.first));
    }
    if (silent.passed() && !std::exchange(told, true)) {
      log_info(fmt::format("rendezvous at {}: waiting for rank 0 ({})", to_string(search.first),
                           failure));
    }
    // Nothing signals when a process begins to listen.
    deadline.rest(wait_seconds);
    wait_seconds = std::min(2 * wait_seconds, retry_seconds_max);
  }
}

/// Listens at the first free port. Throws Error{comm} that names the last one, or Error{remote} if
/// the machine does not have the address.
UniqueFd listen_at_free_port(const Endpoint& first, int ports) {
  for (int i = 0;; ++i) {
    Result<UniqueFd> listener = listen_tcp({first.host, first.port + i});
    if (listener.ok()) return std::move(listener.value());
    if (i + 1 < ports) continue;
    fail_to_listen(listener.failure());
  }
}

}  // namespace

void fail_to_listen(const Failure& reason) {
  if (reason.passing) {
    fail(ErrorCode::comm, "rendezvous: {} ({}, {})", reason.message, env::master_addr,
         env::master_port);
  }
  fail(ErrorCode::remote,
       "rendezvous: {}; {} (dstrain --master_addr) names the machine of rank 0, {} a port of it",
       reason.message, env::master_addr, env::master_port);
}

TcpStore::TcpStore(Options options) : options_(std::move(options)) {
  options_.loopback_only |= options_.token.empty();
  if (options_.loopback_only && !is_loopback(options_.endpoint.host)) {
    options_.endpoint.host = "127.0.0.1";
  }
}

std::unique_ptr<TcpStore> TcpStore::serve(Options options, UniqueFd listener) {
  std::unique_ptr<TcpStore> store(new TcpStore(std::move(options)));
  Options& own = store->options_;
  if (!listener) listener = listen_at_free_port(own.endpoint, own.ports);
  store->server_ = std::make_unique<TcpStoreServer>(
      std::move(listener),
      TcpStoreServer::Guard{.token = own.token, .own_user_only = own.loopback_only});
  own.endpoint.port = store->server_->port();
  return store;
}

std::unique_ptr<TcpStore> TcpStore::connect(Options options) {
  std::unique_ptr<TcpStore> store(new TcpStore(std::move(options)));
  Options& own = store->options_;
  Deadline deadline = Deadline::after(own.timeout_seconds);
  Found found = find_server({own.endpoint, own.ports, own.token, own.loopback_only}, deadline);
  own.endpoint.port = found.port;
  store->idle_.push_back(std::move(found.socket));
  return store;
}

/// Returns a connection of an earlier call, or a new one, made by `deadline`.
UniqueFd TcpStore::idle_connection(Deadline& deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      UniqueFd connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  Deadline patience = deadline.at_most(options_.timeout_seconds);
  Found found =
      find_server({options_.endpoint, 1, options_.token, options_.loopback_only}, patience);
  deadline.put_off(patience.standstill_seconds());
  return std::move(found.socket);
}

/// A connection that fails or times out is closed, which also ends its request on the server.
std::string TcpStore::exchange(const std::vector<std::uint8_t>& frame,
                               Deadline deadline,
                               const std::string& timeout_message) {
  UniqueFd connection = idle_connection(deadline);
  std::array<std::uint8_t, 4> length{};
  std::string payload;
  Transfer outcome = send_all(connection.get(), frame, deadline);
  if (outcome == Transfer::done) outcome = receive_all(connection.get(), length, deadline);
  if (outcome == Transfer::done) {
    payload.resize(std::min(decode_length(length), frame_bytes_max));
    outcome =
        receive_all(connection.get(),
                    {reinterpret_cast<std::uint8_t*>(payload.data()), payload.size()}, deadline);
  }
  if (outcome == Transfer::timed_out) fail(ErrorCode::timeout, "{}", timeout_message);
  if (outcome == Transfer::closed) {
    fail(ErrorCode::comm, "the rendezvous at {} closed the connection: rank 0 has ended",
         to_string(options_.endpoint));
  }
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(connection));
  return payload;
}

void TcpStore::set(const std::string& key, std::string_view value) {
  exchange(encode_request({Verb::set, key, std::string(value)}),
           Deadline::after(options_.timeout_seconds),
           fmt::format("the rendezvous at {} does not answer", to_string(options_.endpoint)));
}

std::string TcpStore::get(const std::string& key, double timeout_seconds) {
  return exchange(encode_request({Verb::get, key, {}}), Deadline::after(timeout_seconds),
                  fmt::format("no rank set \"{}\" within {:g} s", key, timeout_seconds));
}

std::vector<std::string> TcpStore::gather(const std::string& key,
                                          Member member,
                                          std::string_view value,
                                          double timeout_seconds) {
  const std::string all =
      exchange(encode_request({Verb::gather, key, gather_value(member.rank, member.size, value)}),
               Deadline::after(timeout_seconds),
               fmt::format("not all ranks gave \"{}\" within {:g} s", key, timeout_seconds));
  return unpack_texts(all, member.size);
}

std::int64_t TcpStore::add(const std::string& key, std::int64_t delta, double timeout_seconds) {
  const std::string sum = exchange(
      encode_request({Verb::add, key, std::to_string(delta)}), Deadline::after(timeout_seconds),
      fmt::format("the rendezvous at {} does not answer", to_string(options_.endpoint)));
  std::int64_t value = 0;
  std::from_chars(sum.data(), sum.data() + sum.size(), value);
  return value;
}

}  // namespace dstrain::comm
