#include "runtime/comm/store/tcp_store.h"

#include <array>
#include <charconv>

#include "runtime/base/error.h"
#include "runtime/comm/store/protocol.h"
#include "runtime/comm/store/tcp_client.h"

namespace dstrain::comm {

TcpStore::TcpStore(Options options) : options_(std::move(options)) {
  if (options_.token.empty() && !is_loopback(options_.endpoint.host)) {
    options_.endpoint.host = "127.0.0.1";
  }
}

std::unique_ptr<TcpStore> TcpStore::serve(Options options) {
  std::unique_ptr<TcpStore> store(new TcpStore(std::move(options)));
  Options& own = store->options_;
  Result<UniqueFd> listener = listen_tcp(own.endpoint);
  if (!listener.ok()) {
    fail(ErrorCode::comm, "rendezvous: {} (MASTER_ADDR, MASTER_PORT)", listener.error());
  }
  store->server_ = std::make_unique<TcpStoreServer>(std::move(listener.value()), own.token);
  own.endpoint.port = store->server_->port();
  return store;
}

std::unique_ptr<TcpStore> TcpStore::connect(Options options) {
  std::unique_ptr<TcpStore> store(new TcpStore(std::move(options)));
  store->idle_.push_back(store->idle_connection(Deadline::after(store->options_.timeout_seconds)));
  return store;
}

/// A connection of an earlier call, or a new one, which is there by `deadline`.
UniqueFd TcpStore::idle_connection(Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      UniqueFd connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  return connect_to_store(options_.endpoint, options_.token,
                          deadline.at_most(options_.timeout_seconds));
}

/// A connection that fails or times out is closed, which also ends its request at the server.
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
                  fmt::format("nobody set \"{}\" within {:g} s", key, timeout_seconds));
}

std::int64_t TcpStore::add(const std::string& key, std::int64_t delta) {
  const std::string sum =
      exchange(encode_request({Verb::add, key, std::to_string(delta)}),
               Deadline::after(options_.timeout_seconds),
               fmt::format("the rendezvous at {} does not answer", to_string(options_.endpoint)));
  std::int64_t value = 0;
  std::from_chars(sum.data(), sum.data() + sum.size(), value);
  return value;
}

}  // namespace dstrain::comm
