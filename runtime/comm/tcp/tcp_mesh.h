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

/// Is told of a rank, as messages call it, to whose host there is no way from this one: nothing
/// there answers, not even that nobody listens.
using TellUnreachable = std::function<void(int rank)>;

/// A rank of a group over TCP.
struct TcpOptions {
  int rank = 0;
  int size = 1;
  double timeout_seconds = 600;  ///< of joining, at least 5, and of each later wait
  std::string name = "world";    ///< keeps the groups that use one store apart
  /// The own address, at which the other ranks reach this one: local_address_towards(MASTER_ADDR).
  std::string address = "127.0.0.1";
  std::string token{};                 ///< of the job
  std::optional<PortRange> ports{};    ///< to listen at; none: at any
  std::vector<int> names{};            ///< what messages call the ranks; empty: 0, 1, ...
  TellUnreachable tell_unreachable{};  ///< called before this rank fails for it

  [[nodiscard]] int name_of(int other) const {
    return names.empty() ? other : names[static_cast<std::size_t>(other)];
  }
};

/// Which ranks connect to each other, and how often.
struct MeshShape {
  std::vector<int> peers;  ///< of this rank; each of them has this rank among its own
  int lines = 1;           ///< connections between two ranks, the same in all of the group
};

/// By rank: a non-blocking socket per line; none of ranks that are no peers.
using TcpMesh = std::vector<std::vector<UniqueFd>>;

/// Connects the ranks of a group; every rank calls it. Both ends of a connection have proved the
/// job's token for this very group and line (token_proof.h); nobody listens any more when it
/// returns. Throws Error{comm} or Error{timeout} that names who is missing.
TcpMesh connect_mesh(Store& store, const TcpOptions& options, const MeshShape& shape);

/// Connects two ranks of a group, which both call it, once. The first to come waits for the other;
/// meanwhile it calls `look` twenty times a second, which may throw. Else as connect_mesh().
UniqueFd connect_pair(Store& store, const TcpOptions& options, int peer, FunctionRef<void()> look);

}  // namespace dstrain::comm
