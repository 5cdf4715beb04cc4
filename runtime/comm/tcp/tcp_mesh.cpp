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

[[noreturn]] void fail_to_connect(const TcpOptions& options, int peer, const std::string& why) {
  fail(ErrorCode::comm,
       "rank {} cannot connect from {} to rank {}: {}: is there a firewall between the nodes?",
       options.rank, options.address, peer, why);
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

/// The ranks above `own` whose connections are not all there.
std::vector<int> missing_ranks(const TcpMesh& mesh, int own) {
  std::vector<int> missing;
  for (int rank = own + 1; rank < std::ssize(mesh); ++rank) {
    if (!std::ranges::all_of(mesh[static_cast<std::size_t>(rank)], &UniqueFd::operator bool)) {
      missing.push_back(rank);
    }
  }
  return missing;
}

/// Takes a connection that is due; others are dropped. Its number is that of the other rank, times
/// the lines, and its line.
void take(TcpMesh& mesh, int own, std::uint32_t lines, TokenListener::Client client) {
  const std::uint32_t rank = client.number / lines;
  if (rank <= static_cast<std::uint32_t>(own) || rank >= mesh.size() || mesh[rank].empty()) return;
  UniqueFd& place = mesh[rank][client.number % lines];
  if (!place) place = std::move(client.socket);
}

/// Waits for all ranks above the own.
void accept_higher(TcpMesh& mesh,
                   TokenListener listener,
                   const TcpOptions& options,
                   std::uint32_t lines,
                   Deadline end) {
  for (auto missing = missing_ranks(mesh, options.rank); !missing.empty();
       missing = missing_ranks(mesh, options.rank)) {
    if (end.passed()) {
      fail(ErrorCode::timeout,
           "rank {} waits at {} for connections from {}: is there a firewall between the nodes?",
           options.rank, options.address, name_ranks(missing));
    }
    std::vector<pollfd> fds;
    listener.add_polls(fds);
    const int most = listener.poll_ms();
    ::poll(fds.data(), fds.size(),
           most < 0 ? end.remaining_ms() : std::min(most, end.remaining_ms()));
    for (TokenListener::Client& client : listener.advance(fds)) {
      take(mesh, options.rank, lines, std::move(client));
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
  Result<UniqueFd> listener = listen_tcp({options.address, 0});
  if (!listener.ok()) fail(ErrorCode::comm, "rank {}: {}", options.rank, listener.error());
  const std::vector<std::string> endpoints =
      store.gather("tcp/" + options.name, {options.rank, options.size},
                   fmt::format("{} {}", options.address, bound_port(listener.value().get())),
                   end.remaining_seconds());
  for (const int peer : shape.peers) {
    if (peer > options.rank) continue;
    const Endpoint endpoint = parse_endpoint(endpoints[static_cast<std::size_t>(peer)]);
    for (std::uint32_t line = 0; line < lines; ++line) {
      const std::uint32_t number = static_cast<std::uint32_t>(options.rank) * lines + line;
      mesh[static_cast<std::size_t>(peer)][line] =
          connect_line(options, peer, endpoint, number, end);
    }
  }
  TokenListener::Settings settings{.listener = std::move(listener.value()),
                                   .magic = magic,
                                   .token = token_of(options),
                                   .name = fmt::format("rank {}", options.rank),
                                   .unproved_max = shape.peers.size() * lines + strangers_max,
                                   .proof_seconds = proof_seconds};
  accept_higher(mesh, TokenListener(std::move(settings)), options, lines, end);
  return mesh;
}

}  // namespace dstrain::comm
