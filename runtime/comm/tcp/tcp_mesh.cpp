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

std::string key_of(const TcpOptions& options, int rank) {
  return fmt::format("tcp/{}/{}", options.name, rank);
}

/// Proofs of one group are of no use in another.
std::string token_of(const TcpOptions& options) {
  return options.token + "/" + options.name;
}

std::uint32_t number_of(int rank, int line) {
  return static_cast<std::uint32_t>(rank) * lines + static_cast<std::uint32_t>(line);
}

Endpoint find_rank(Store& store, const TcpOptions& options, int rank, Deadline deadline) {
  Endpoint endpoint;
  std::istringstream(store.get(key_of(options, rank), deadline.remaining_seconds())) >>
      endpoint.host >> endpoint.port;
  return endpoint;
}

[[noreturn]] void fail_to_connect(const TcpOptions& options, int peer, const std::string& why) {
  fail(ErrorCode::comm,
       "rank {} cannot connect from {} to rank {}: {}: is there a firewall between the nodes?",
       options.rank, options.address, peer, why);
}

/// A connection that breaks before it is proved has made room for another: it is tried again.
UniqueFd connect_line(
    const TcpOptions& options, int peer, const Endpoint& endpoint, int line, Deadline deadline) {
  const std::string token = token_of(options);
  while (true) {
    Result<UniqueFd> socket = connect_tcp(endpoint, deadline);
    if (!socket.ok()) {
      fail_to_connect(options, peer, fmt::format("{}: {}", to_string(endpoint), socket.error()));
    }
    const TokenProof proof{.magic = magic, .token = token, .number = number_of(options.rank, line)};
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
    const auto& sockets = mesh[static_cast<std::size_t>(rank)];
    if (!std::ranges::all_of(sockets, [](const UniqueFd& s) { return bool(s); })) {
      missing.push_back(rank);
    }
  }
  return missing;
}

/// Takes a connection that is due; others are dropped.
void take(TcpMesh& mesh, int own, TokenListener::Client client) {
  const std::uint32_t rank = client.number / lines;
  if (rank <= static_cast<std::uint32_t>(own) || rank >= mesh.size()) return;
  UniqueFd& place = mesh[rank][client.number % lines];
  if (!place) place = std::move(client.socket);
}

/// Waits for all ranks above the own.
void accept_higher(TcpMesh& mesh, TokenListener listener, const TcpOptions& options, Deadline end) {
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
      take(mesh, options.rank, std::move(client));
    }
  }
}

}  // namespace

/// Each rank connects to those below, in their order, and then accepts those above: rank 0 accepts
/// at once, so that every rank comes to accept when all below it have. Before the first connection
/// it is done with the store, which may go with rank 0 as soon as that has them all.
TcpMesh connect_mesh(Store& store, const TcpOptions& options) {
  const Deadline end = Deadline::after(std::max(options.timeout_seconds, join_seconds_min));
  TcpMesh mesh(static_cast<std::size_t>(options.size));
  Result<UniqueFd> listener = listen_tcp({options.address, 0});
  if (!listener.ok()) fail(ErrorCode::comm, "rank {}: {}", options.rank, listener.error());
  store.set(key_of(options, options.rank),
            fmt::format("{} {}", options.address, bound_port(listener.value().get())));
  std::vector<Endpoint> lower;
  lower.reserve(static_cast<std::size_t>(options.rank));
  for (int rank = 0; rank < options.rank; ++rank) {
    lower.push_back(find_rank(store, options, rank, end));
  }
  for (int rank = 0; rank < options.rank; ++rank) {
    const auto peer = static_cast<std::size_t>(rank);
    for (int line = 0; line < lines; ++line) {
      mesh[peer][static_cast<std::size_t>(line)] =
          connect_line(options, rank, lower[peer], line, end);
    }
  }
  TokenListener::Settings settings{.listener = std::move(listener.value()),
                                   .magic = magic,
                                   .token = token_of(options),
                                   .name = fmt::format("rank {}", options.rank),
                                   .unproved_max = mesh.size() * lines + strangers_max,
                                   .proof_seconds = proof_seconds};
  accept_higher(mesh, TokenListener(std::move(settings)), options, end);
  return mesh;
}

}  // namespace dstrain::comm
