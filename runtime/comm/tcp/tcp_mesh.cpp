#include "runtime/comm/tcp/tcp_mesh.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <sstream>

#include <poll.h>

#include "runtime/base/error.h"
#include "runtime/base/socket.h"
#include "runtime/base/token_listener.h"
#include "runtime/comm/group_barrier.h"

namespace dstrain::comm {
namespace {

constexpr Magic magic{'d', 's', 't', 'r', 't', 'c', 'p', '1'};
constexpr double join_seconds_min = 5;
constexpr double proof_seconds = 10;
/// How often a rank that waits for another looks whether it still has to.
constexpr double mesh_look_seconds = 0.05;
constexpr std::size_t strangers_max = 128;  // beside the connections that are due

/// Proofs of one group are of no use in another.
std::string token_of(const TcpOptions& options) {
  return options.token + "/" + options.name;
}

Endpoint parse_endpoint(const std::string& text) {
  Endpoint endpoint;
  std::istringstream(text) >> endpoint.host >> endpoint.port;
  return endpoint;
}

UniqueFd open_listener(const TcpOptions& options) {
  Result<UniqueFd> listener = listen_tcp({options.address, 0});
  if (listener.ok()) return std::move(listener.value());
  fail(ErrorCode::comm, "rank {}: {}", options.name_of(options.rank), listener.error());
}

/// What parse_endpoint() reads.
std::string endpoint_text(const TcpOptions& options, const UniqueFd& listener) {
  return fmt::format("{} {}", options.address, bound_port(listener.get()));
}

[[noreturn]] void fail_to_connect(const TcpOptions& options, int peer, const std::string& why) {
  fail(ErrorCode::comm,
       "rank {} cannot connect from {} to rank {}: {}: is there a firewall between the nodes?",
       options.name_of(options.rank), options.address, options.name_of(peer), why);
}

/// A connection that breaks before it is proved has made room for another: it is tried again.
UniqueFd connect_line(const TcpOptions& options,
                      int peer,
                      const Endpoint& endpoint,
                      std::uint32_t number,
                      Deadline deadline) {
  const std::string token = token_of(options);
  while (true) {
    Result<UniqueFd> socket = connect_tcp(endpoint, deadline);
    if (!socket.ok()) {
      fail_to_connect(options, peer, fmt::format("{}: {}", to_string(endpoint), socket.error()));
    }
    const TokenProof proof{.magic = magic, .token = token, .number = number};
    const TokenAnswer answer = prove_token(socket.value().get(), proof, deadline);
    if (answer == TokenAnswer::accepted) return std::move(socket.value());
    if (answer != TokenAnswer::broken) {
      fail_to_connect(options, peer, to_string(endpoint) + " is not a rank of this group");
    }
    if (deadline.passed()) fail_to_connect(options, peer, to_string(endpoint) + " is silent");
  }
}

/// What messages call the ranks whose connections are not all there.
std::vector<int> missing_ranks(const TcpMesh& mesh, const TcpOptions& options) {
  std::vector<int> missing;
  for (std::size_t rank = 0; rank < mesh.size(); ++rank) {
    if (!std::ranges::all_of(mesh[rank], &UniqueFd::operator bool)) {
      missing.push_back(options.name_of(static_cast<int>(rank)));
    }
  }
  return missing;
}

/// Takes a connection that is due; others are dropped. Its number is that of the other rank, times
/// the lines, and its line.
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

/// Waits for the connections that are not there.
void accept_missing(TcpMesh& mesh,
                    TokenListener listener,
                    const TcpOptions& options,
                    std::uint32_t lines,
                    Deadline end,
                    FunctionRef<void()> look) {
  for (auto missing = missing_ranks(mesh, options); !missing.empty();
       missing = missing_ranks(mesh, options)) {
    look();
    if (end.passed()) {
      fail(ErrorCode::timeout,
           "rank {} waits at {} for connections from {}: is there a firewall between the nodes?",
           options.name_of(options.rank), options.address, name_ranks(missing));
    }
    std::vector<pollfd> fds;
    listener.add_polls(fds);
    const int most = listener.poll_ms();
    const int look_ms = end.at_most(mesh_look_seconds).remaining_ms();
    ::poll(fds.data(), fds.size(), most < 0 ? look_ms : std::min(most, look_ms));
    for (TokenListener::Client& client : listener.advance(fds)) {
      take(mesh, lines, std::move(client));
    }
  }
}

}  // namespace

/// Each rank connects to its peers below, in their order, and then accepts those above: rank 0
/// accepts at once, so that every rank comes to accept when all below it have. Before the first
/// connection it is done with the store, which may go with rank 0 as soon as that has them all.
TcpMesh connect_mesh(Store& store, const TcpOptions& options, const MeshShape& shape) {
  const Deadline end = Deadline::after(std::max(options.timeout_seconds, join_seconds_min));
  const auto lines = static_cast<std::uint32_t>(shape.lines);
  TcpMesh mesh(static_cast<std::size_t>(options.size));
  for (const int peer : shape.peers) mesh[static_cast<std::size_t>(peer)].resize(lines);
  UniqueFd listener = open_listener(options);
  const std::vector<std::string> endpoints =
      store.gather("tcp/" + options.name, {options.rank, options.size},
                   endpoint_text(options, listener), end.remaining_seconds());
  for (const int peer : shape.peers) {
    if (peer > options.rank) continue;
    const Endpoint endpoint = parse_endpoint(endpoints[static_cast<std::size_t>(peer)]);
    for (std::uint32_t line = 0; line < lines; ++line) {
      const std::uint32_t number = static_cast<std::uint32_t>(options.rank) * lines + line;
      mesh[static_cast<std::size_t>(peer)][line] =
          connect_line(options, peer, endpoint, number, end);
    }
  }
  accept_missing(mesh, listen_to(std::move(listener), options, shape.peers.size() * lines), options,
                 lines, end, [] {});
  return mesh;
}

/// Who comes first says where it listens, so that nobody waits for an answer of the store.
UniqueFd connect_pair(Store& store, const TcpOptions& options, int peer, FunctionRef<void()> look) {
  const Deadline end = Deadline::after(std::max(options.timeout_seconds, join_seconds_min));
  TcpOptions pair = options;
  pair.name += fmt::format("/{}-{}", std::min(options.rank, peer), std::max(options.rank, peer));
  const std::string key = "tcp/" + pair.name;
  if (store.add(key + "/came", 1, end.remaining_seconds()) > 1) {
    const Endpoint endpoint = parse_endpoint(store.get(key, end.remaining_seconds()));
    return connect_line(pair, peer, endpoint, static_cast<std::uint32_t>(pair.rank), end);
  }
  UniqueFd listener = open_listener(pair);
  store.set(key, endpoint_text(pair, listener));
  TcpMesh mesh(static_cast<std::size_t>(pair.size));
  std::vector<UniqueFd>& line = mesh[static_cast<std::size_t>(peer)];
  line.resize(1);
  accept_missing(mesh, listen_to(std::move(listener), pair, 1), pair, 1, end, look);
  return std::move(line.front());
}

}  // namespace dstrain::comm
