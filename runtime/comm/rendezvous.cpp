#include "runtime/comm/rendezvous.h"

#include <vector>

#include "runtime/base/deadline.h"
#include "runtime/base/error.h"
#include "runtime/comm/group_barrier.h"

namespace dstrain::comm {
namespace {

/// How long to wait for the answer about a rank that may have arrived, once the time is over.
constexpr double last_look_seconds = 0.2;

/// The store is rank 0's, which therefore waits longer: the others ask it who is missing.
constexpr double linger_seconds = 1;

/// Set by the rank that arrives last: one question a rank, however many there are.
constexpr const char* all_arrived = "arrived";

std::string key_of(int rank) {
  return fmt::format("arrived/{}", rank);
}

bool appears(Store& store, const std::string& key, double seconds) {
  try {
    store.get(key, seconds);
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::timeout) throw;
    return false;
  }
}

}  // namespace

void wait_for_all(Store& store, const Rendezvous& rendezvous) {
  const double linger = rendezvous.rank == 0 ? linger_seconds : 0;
  const Deadline deadline = Deadline::after(rendezvous.timeout_seconds + linger);
  if (store.add(key_of(rendezvous.rank), 1) != 1) {
    fail(ErrorCode::comm, "two processes say that they are rank {} at {}: give each its own RANK",
         rendezvous.rank, rendezvous.place);
  }
  if (store.add("arrivals", 1) == rendezvous.world_size) store.set(all_arrived, "");
  if (appears(store, all_arrived, deadline.remaining_seconds())) return;
  std::vector<int> missing;
  for (int rank = 0; rank < rendezvous.world_size; ++rank) {
    if (!appears(store, key_of(rank), last_look_seconds)) missing.push_back(rank);
  }
  if (missing.empty()) return;
  fail(ErrorCode::timeout, "rendezvous timed out after {:g} s at {}: waiting for {}",
       rendezvous.timeout_seconds, rendezvous.place, name_ranks(missing));
}

}  // namespace dstrain::comm
