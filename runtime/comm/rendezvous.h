#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "runtime/comm/store.h"
#include "runtime/os/socket.h"
#include "runtime/rank/rank_nodes.h"

namespace dstrain::comm {

/// Receives the ranks that have not come, as messages name them.
using TellAwaited = std::function<void(const std::string& ranks)>;

struct Rendezvous {
  int rank = 0;
  int world_size = 1;
  std::string world_claim = {};  ///< as in WorkerEnv; empty: WORLD_SIZE says it
  double timeout_seconds = 600;
  std::string place = "the store";  ///< for messages: "127.0.0.1:29500"
  RankNodes nodes{};                ///< for messages
  /// Called by rank 0 every 10 s, and by all ranks when time is up.
  TellAwaited tell{};
};

/// Returns once this machine has a route to the place where the ranks meet. A name that cannot be
/// resolved is tried again until the timeout, with a warning at once: a name server may start after
/// the ranks, as may the name of rank 0's machine. Throws Error{remote} that names `variable`, the
/// source of the address: at the timeout, or at once if no network leads there.
void wait_for_route(const Endpoint& master, std::string_view variable, double timeout_seconds);

/// Returns once all ranks have called it with the same store; once per store. Throws Error{timeout}
/// that names the ranks that have not arrived, Error{comm} if two call with the same rank,
/// Error{config} on all ranks if two disagree about `world_size`.
void wait_for_all(Store& store, const Rendezvous& rendezvous);

/// Call before failing for a reason that every rank finds by itself. The store ends with rank 0,
/// which lets the others find out first, for at most two seconds.
void refuse_together(Store& store, Store::Member member) noexcept;

}  // namespace dstrain::comm
