#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/function_ref.h"
#include "runtime/base/unique_handle.h"
#include "runtime/comm/store.h"
#include "runtime/rank/port_range.h"

namespace dstrain::comm {

/// Receives a rank, as messages name it, whose host cannot be reached from this one: it does not
/// answer at all, not even to refuse a connection.
using TellUnreachable = std::function<void(int rank)>;

/// A rank of a group over TCP.
struct TcpOptions {
  int rank = 0;
  int size = 1;
  double timeout_seconds = 600;  ///< for joining, at least 5, and for each later wait
  std::string name = "world";    ///< separates the groups that use one store
  /// The address of this rank for the others: local_address_towards(MASTER_ADDR).
  std::string address = "127.0.0.1";
  std::string token{};                 ///< of the job
  std::optional<PortRange> ports{};    ///< ports to listen at; none: any
  std::vector<int> names{};            ///< names of the ranks in messages; empty: 0, 1, ...
  TellUnreachable tell_unreachable{};  ///< called before this rank fails because of it

  [[nodiscard]] int name_of(int other) const {
    return names.empty() ? other : names[static_cast<std::size_t>(other)];
  }
};

/// The pairs of ranks that connect, and the connections of each.
struct MeshShape {
  std::vector<int> peers;  ///< of this rank; each of them has this rank among its own
  int lines = 1;           ///< connections between two ranks, the same in all of the group
};

/// By rank: a non-blocking socket per line; none for ranks that are not peers.
using TcpMesh = std::vector<std::vector<UniqueFd>>;

/// Connects the ranks of a group; every rank calls it. Both ends of a connection have proved the
/// job's token for this group and line (token_proof.h); no rank listens any more when it returns.
/// Throws Error{comm} or Error{timeout} that names the missing ranks.
TcpMesh connect_mesh(Store& store, const TcpOptions& options, const MeshShape& shape);

/// Connects two ranks of a group, which both call it, once. The first one waits for the other and
/// meanwhile calls `look` twenty times a second, which may throw. Otherwise as connect_mesh().
UniqueFd connect_pair(Store& store, const TcpOptions& options, int peer, FunctionRef<void()> look);

}  // namespace dstrain::comm
