#include "runtime/comm/rendezvous.h"

#include <vector>

#include "runtime/base/deadline.h"
#include "runtime/base/error.h"
#include "runtime/comm/meeting.h"

namespace dstrain::comm {
namespace {

/// How long to wait for the answer about a rank that may have arrived, once the time is over.
constexpr double last_look_seconds = 0.2;

bool arrives(Store& store, int rank, double seconds) {
  try {
    store.get(fmt::format("arrived/{}", rank), seconds);
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::timeout) throw;
    return false;
  }
}

}  // namespace

void wait_for_all(Store& store, const Rendezvous& rendezvous) {
  const Deadline deadline = Deadline::after(rendezvous.timeout_seconds);
  if (store.add(fmt::format("arrived/{}", rendezvous.rank), 1) != 1) {
    fail(ErrorCode::comm, "two processes say that they are rank {} at {}: give each its own RANK",
         rendezvous.rank, rendezvous.place);
  }
  std::vector<int> missing;
  for (int rank = 0; rank < rendezvous.world_size; ++rank) {
    const double seconds = missing.empty() ? deadline.remaining_seconds() : last_look_seconds;
    if (!arrives(store, rank, seconds)) missing.push_back(rank);
  }
  if (missing.empty()) return;
  fail(ErrorCode::timeout, "rendezvous timed out after {:g} s at {}: waiting for {}",
       rendezvous.timeout_seconds, rendezvous.place, name_ranks(missing));
}

}  // namespace dstrain::comm
