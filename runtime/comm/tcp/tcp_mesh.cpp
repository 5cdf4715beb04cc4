#include "runtime/comm/tcp/tcp_mesh.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <sstream>
#include <utility>

#include <poll.h>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/comm/group_barrier.h"
#include "runtime/os/socket.h"
#include "runtime/os/token_listener.h"

namespace dstrain::comm {
namespace {

constexpr Magic magic{'d', 's', 't', 'r', 't', 'c', 'p', '1'};
constexpr double join_seconds_min = 5;
constexpr double proof_seconds = 10;
constexpr double silent_seconds = 10;  ///< a warning then names the rank that is not reached
/// How often a rank that waits for another checks whether it still must.
constexpr double mesh_look_seconds = 0.05;
constexpr std::size_t strangers_max = 128;  // in addition to the expected connections

/// Makes proofs of one group useless in another.
std::string token_of(const TcpOptions& options) {
  return options.token + "/" + options.name;
}

Endpoint parse_endpoint(const std::string& text) {
  Endpoint endpoint;
  std::istringstream(text) >> endpoint.host >> endpoint.port;
  return endpoint;
}

UniqueFd open_listener(const TcpOptions& options) {
  Result<UniqueFd> listener = listen_within(options.address, options.ports);
  if (listener.ok()) return std::move(listener.value());
  fail(ErrorCode::comm, "rank {}: {}", options.name_of(options.rank), listener.error());
}

/// Returns a text for parse_endpoint().
std::string endpoint_text(const TcpOptions& options, const UniqueFd& listener) {
  return fmt::format("{} {}", options.address, bound_port(listener.get()));
}

constexpr const char* remedy =
    "is there a firewall between the hosts? --port_range says which ports it must let pass";

std::string describe_way(const TcpOptions& options, int peer, const Endpoint& endpoint) {
  return fmt::format("rank {} cannot connect from {} to rank {} at {}",
                     options.name_of(options.rank), options.address, options.name_of(peer),
                     to_string(endpoint));
}

/// Warns after a while, because a firewall that drops packets sends no answer.
UniqueFd connect_patiently(const TcpOptions& options,
                           int peer,
                           const Endpoint& endpoint,
                           Deadline& deadline) {
  for (bool told = false;;) {
    Deadline patience = deadline.at_most(silent_seconds);
    Result<UniqueFd> socket = connect_tcp(endpoint, patience);
    deadline.put_off(patience.standstill_seconds());
    if (socket.ok()) return std::move(socket.value());
    const std::string way = describe_way(options, peer, endpoint);
    if (!patience.passed() || deadline.passed()) {
      const bool answers = socket.failure().passing;
      if (!answers && options.tell_unreachable) options.tell_unreachable(options.name_of(peer));
      fail(ErrorCode::comm, "{}: {}: {}", way, socket.error(), remedy);
    }
    if (!std::exchange(told, true)) log_warning(fmt::format("{} yet: {}", way, remedy));
  }
}

/// Retries a connection that breaks before it is proved, which the server closed to make room for
/// another. Reaching the network gets three quarters of the time: a rank that cannot reach another
/// should fail before the ranks that wait for it, which know less.
UniqueFd connect_line(const TcpOptions& options,
                      int peer,
                      const Endpoint& endpoint,
                      std::uint32_t number,
                      Deadline& deadline) {
  const std::string token = token_of(options);
  Deadline reached = deadline.at_most(deadline.remaining_seconds() * 3 / 4);
  while (true) {
    const double before = reached.standstill_seconds();
    UniqueFd socket = connect_patiently(options, peer, endpoint, reached);
    deadline.put_off(reached.standstill_seconds() - before);
    const TokenProof proof{.magic = magic, .token = token, .number = number};
    const TokenAnswer answer = prove_token(socket.get(), proof, deadline);
    if (answer == TokenAnswer::accepted) return socket;
    if (answer != TokenAnswer::broken) {
      fail(ErrorCode::comm, "{}: the process that answers is not a rank of this group",
           describe_way(options, peer, endpoint));
    }
    if (deadline.passed()) {
      fail(ErrorCode::comm,
           "{}: it accepts connections and says nothing; it may be waiting for another rank",
           describe_way(options, peer, endpoint));
    }
  }
}

/// Returns the ranks that do not have all connections.
std::vector<std::size_t> missing_ranks(const TcpMesh& mesh) {
  std::vector<std::size_t> missing;
  for (std::size_t rank = 0; rank < mesh.size(); ++rank) {
    if (!std::ranges::all_of(mesh[rank], &UniqueFd::operator bool)) missing.push_back(rank);
  }
  return missing;
}

/// Returns "rank 3 (10.0.0.3)", with the addresses that are known.
std::string name_missing(std::span<const std::size_t> missing,
                         const std::vector<Endpoint>& endpoints,
                         const TcpOptions& options) {
  std::vector<int> names;
  for (const std::size_t rank : missing) names.push_back(options.name_of(static_cast<int>(rank)));
  std::string text = name_ranks(names);
  const bool one = missing.size() == 1 && missing.front() < endpoints.size();
  return one ? fmt::format("{} ({})", text, endpoints[missing.front()].host) : text;
}

/// Takes an expected connection; others are dropped. Its number is the other rank times the lines,
/// plus its line.
void take(TcpMesh& mesh, std::uint32_t lines, TokenListener::Client client) {
  const std::uint32_t rank = client.number / lines;
  if (rank >= mesh.size() || mesh[rank].empty()) return;
  UniqueFd& place = mesh[rank][client.number % lines];
  if (!place) place = std::move(client.socket);
}

TokenListener listen_to(UniqueFd listener, const TcpOptions& options, std::size_t due) {
  return TokenListener({.listener = std::move(listener),
                        .magic = magic,
                        .token = token_of(options),
                        .name = fmt::format("rank {}", options.name_of(options.rank)),
                        .unproved_max = due + strangers_max,
                        .proof_seconds = proof_seconds});
}

/// The state of a rank that waits for connections.
struct Waiting {
  Endpoint own;                  ///< this rank's address to listen at
  std::vector<Endpoint> others;  ///< addresses by rank; empty: not known
  std::uint32_t lines = 1;
};

/// Waits for the missing connections.
void accept_missing(TcpMesh& mesh,
                    TokenListener listener,
                    const TcpOptions& options,
                    const Waiting& waiting,
                    Deadline end,
                    FunctionRef<void()> look) {
  for (auto missing = missing_ranks(mesh); !missing.empty(); missing = missing_ranks(mesh)) {
    look();
    if (end.passed()) {
      fail(ErrorCode::timeout, "rank {} waits at {} for connections from {}: {}",
           options.name_of(options.rank), to_string(waiting.own),
           name_missing(missing, waiting.others, options), remedy);
    }
    std::vector<pollfd> fds;
    listener.add_polls(fds);
    const int most = listener.poll_ms();
    const int look_ms = end.at_most(mesh_look_seconds).remaining_ms();
    end.slice(mesh_look_seconds, [&] {
      ::poll(fds.data(), fds.size(), most < 0 ? look_ms : std::min(most, look_ms));
    });
    for (TokenListener::Client& client : listener.advance(fds)) {
      take(mesh, waiting.lines, std::move(client));
    }
  }
}

}  // namespace

/// Each rank connects to its lower peers, in order, and then accepts those above. Rank 0 accepts at
/// once, and every rank comes to accept when all below it have. A rank finishes with the store
/// before its first connection, because the store may end with rank 0 once that has all of them.
TcpMesh connect_mesh(Store& store, const TcpOptions& options, const MeshShape& shape) {
  const double seconds = std::max(options.timeout_seconds, join_seconds_min);
  const auto lines = static_cast<std::uint32_t>(shape.lines);
  TcpMesh mesh(static_cast<std::size_t>(options.size));
  for (const int peer : shape.peers) mesh[static_cast<std::size_t>(peer)].resize(lines);
  UniqueFd listener = open_listener(options);
  const Endpoint own{options.address, bound_port(listener.get())};
  std::vector<Endpoint> endpoints;
  for (const std::string& text : store.gather("tcp/" + options.name, {options.rank, options.size},
                                              endpoint_text(options, listener), seconds)) {
    endpoints.push_back(parse_endpoint(text));
  }
  Deadline end = Deadline::after(seconds);  // all ranks have come this far
  for (const int peer : shape.peers) {
    if (peer > options.rank) continue;
    const Endpoint& endpoint = endpoints[static_cast<std::size_t>(peer)];
    for (std::uint32_t line = 0; line < lines; ++line) {
      const std::uint32_t number = static_cast<std::uint32_t>(options.rank) * lines + line;
      mesh[static_cast<std::size_t>(peer)][line] =
          connect_line(options, peer, endpoint, number, end);
    }
  }
  accept_missing(mesh, listen_to(std::move(listener), options, shape.peers.size() * lines), options,
                 {own, std::move(endpoints), lines}, end, [] {});
  return mesh;
}

/// The first rank publishes its address, so that neither waits for an answer of the store.
UniqueFd connect_pair(Store& store, const TcpOptions& options, int peer, FunctionRef<void()> look) {
  const double seconds = std::max(options.timeout_seconds, join_seconds_min);
  TcpOptions pair = options;
  pair.name += fmt::format("/{}-{}", std::min(options.rank, peer), std::max(options.rank, peer));
  const std::string key = "tcp/" + pair.name;
  if (store.add(key + "/came", 1, seconds) > 1) {
    const Endpoint endpoint = parse_endpoint(store.get(key, seconds));
    Deadline end = Deadline::after(seconds);
    return connect_line(pair, peer, endpoint, static_cast<std::uint32_t>(pair.rank), end);
  }
  UniqueFd listener = open_listener(pair);
  store.set(key, endpoint_text(pair, listener));
  TcpMesh mesh(static_cast<std::size_t>(pair.size));
  std::vector<UniqueFd>& line = mesh[static_cast<std::size_t>(peer)];
  line.resize(1);
  const Endpoint own{pair.address, bound_port(listener.get())};
  accept_missing(mesh, listen_to(std::move(listener), pair, 1), pair, {own, {}, 1},
                 Deadline::after(seconds), look);
  return std::move(line.front());
}

}  // namespace dstrain::comm
