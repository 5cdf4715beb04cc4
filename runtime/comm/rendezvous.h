#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "runtime/comm/store.h"
#include "runtime/os/socket.h"
#include "runtime/rank/rank_nodes.h"

namespace dstrain::comm {

/// Is told which ranks have not come, as messages name them.
using TellAwaited = std::function<void(const std::string& ranks)>;

struct Rendezvous {
  int rank = 0;
  int world_size = 1;
  std::string world_claim = {};  ///< as WorkerEnv's; empty: WORLD_SIZE says it
  double timeout_seconds = 600;
  std::string place = "the store";  ///< for messages: "127.0.0.1:29500"
  RankNodes nodes{};                ///< for messages
  /// Called by rank 0 every 10 s, and by all ranks when time is up.
  TellAwaited tell{};
};

/// Returns once this machine knows a way to where the ranks meet. A name that cannot be resolved is
/// asked for again until the time is over, and a warning says so at once: a name server may come up
/// after the ranks, as may the name of rank 0's machine. Throws Error{remote} that names
/// `variable`, which says where they meet, when there is no way: then, or at once where no network
/// leads there.
void wait_for_route(const Endpoint& master, std::string_view variable, double timeout_seconds);

/// Returns once all ranks have called it with the same store; once per store. Throws Error{timeout}
/// that names the ranks that have not arrived, Error{comm} when two call with the same rank,
/// Error{config} on all when two disagree about `world_size`.
void wait_for_all(Store& store, const Rendezvous& rendezvous);

/// What one rank refuses, all do, each for itself, after this call. Rank 0 takes the store with it
/// when it goes: it lets the others find out first, for two seconds at most.
void refuse_together(Store& store, Store::Member member) noexcept;

}  // namespace dstrain::comm
