#include "runtime/comm/rendezvous.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/deadline.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/number.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::comm {
namespace {

/// How long to wait for the answer about a rank that may have arrived, after the timeout.
constexpr double last_look_seconds = 0.2;

/// Rank 0 serves the store and therefore waits longer, by a tenth: the others ask it for the
/// missing ranks, and ranks that cannot reach it have time to report that.
constexpr double linger_seconds_min = 1;
constexpr double linger_seconds_max = 10;

/// How often rank 0 checks which ranks are missing.
constexpr double silent_seconds = 10;

constexpr double resolve_again_seconds = 0.25;
constexpr double refusal_seconds = 2;

/// Set by the rank that arrives last, or that finds out, with a reason, that the ranks will not be
/// complete: one request per rank, however many ranks there are.
constexpr const char* all_arrived = "arrived";
constexpr const char* world_size = "world size";
constexpr const char* world_claim = "world claim";
constexpr const char* other_world_size = "other world size";  ///< not that of rank 0

std::string key_of(int rank) {
  return fmt::format("arrived/{}", rank);
}

std::optional<std::string> find(Store& store, const std::string& key, double seconds) {
  try {
    return store.get(key, seconds);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::timeout) throw;
    return std::nullopt;
  }
}

std::vector<int> missing_ranks(Store& store, const Rendezvous& rendezvous) {
  std::vector<int> missing;
  for (int rank = 0; rank < rendezvous.world_size; ++rank) {
    if (!find(store, key_of(rank), last_look_seconds)) missing.push_back(rank);
  }
  return missing;
}

std::string claim_of(const Rendezvous& rendezvous) {
  if (!rendezvous.world_claim.empty()) return rendezvous.world_claim;
  return fmt::format("WORLD_SIZE of rank {} says {} ranks", rendezvous.rank, rendezvous.world_size);
}

/// There may be as many ranks as the largest world size that any of them has.
[[noreturn]] void refuse_worlds(Store& store,
                                const Rendezvous& rendezvous,
                                const std::string& contradiction) {
  const std::string other = find(store, other_world_size, last_look_seconds).value_or("");
  const int size = std::max(rendezvous.world_size, parse_number<int>(other).value_or(0));
  refuse_together(store, {rendezvous.rank, size});
  fail(ErrorCode::config, "{}", contradiction);
}

/// Rank 0 publishes the world size; a rank with another one tells all, and fails.
void check_world_size(Store& store, const Rendezvous& rendezvous, Deadline deadline) {
  const std::string own = std::to_string(rendezvous.world_size);
  if (rendezvous.rank == 0) {
    store.set(world_claim, claim_of(rendezvous));
    return store.set(world_size, own);
  }
  const auto first = find(store, world_size, deadline.remaining_seconds());
  if (!first || *first == own) return;
  const std::string contradiction =
      fmt::format("{}, and {}: give all the same", claim_of(rendezvous),
                  find(store, world_claim, last_look_seconds).value_or("rank 0 " + *first));
  store.set(other_world_size, own);
  store.set(all_arrived, contradiction);
  refuse_worlds(store, rendezvous, contradiction);
}

/// Returns "ranks 2 3 (host w1)", and passes it to `rendezvous.tell`; empty if all have come after
/// all.
std::string tell_missing(Store& store, const Rendezvous& rendezvous) {
  const std::vector<int> missing = missing_ranks(store, rendezvous);
  if (missing.empty()) return "";
  std::string text = locate_ranks(missing, rendezvous.nodes);
  if (rendezvous.tell) rendezvous.tell(text);
  return text;
}

/// Returns the reason why there is no job, or an empty text; nothing if not all have come.
std::optional<std::string> wait_for_arrivals(Store& store,
                                             const Rendezvous& rendezvous,
                                             Deadline deadline) {
  if (rendezvous.rank != 0) return find(store, all_arrived, deadline.remaining_seconds());
  for (std::string told;;) {
    const Deadline patience = deadline.at_most(silent_seconds);
    if (auto answer = find(store, all_arrived, patience.remaining_seconds())) return answer;
    deadline.skip_standstill(silent_seconds);
    if (deadline.passed()) return std::nullopt;
    const std::string missing = tell_missing(store, rendezvous);
    if (missing.empty() || missing == told) continue;
    log_info(fmt::format("rendezvous at {}: waiting for {}", rendezvous.place, missing));
    told = missing;
  }
}

}  // namespace

void wait_for_route(const Endpoint& master, std::string_view variable, double timeout_seconds) {
  Deadline deadline = Deadline::after(timeout_seconds);
  for (bool told = false;;) {
    const Result<std::string> own = local_address_towards(master);
    if (own.ok()) return;
    if (!own.failure().passing || deadline.passed()) {
      fail(ErrorCode::remote,
           "{}: {}; give {} (dstrain --master_addr) a name or an address of rank 0's machine that "
           "leads there from every node",
           variable, own.error(), env::master_addr);
    }
    if (!std::exchange(told, true)) {
      log_warning(fmt::format(
          "{}: {}; trying again for {:g} s. If the name stays unknown, set {} to an address that "
          "every node reaches",
          variable, own.error(), timeout_seconds, env::master_addr));
    }
    // Nothing signals a change of the answer.
    deadline.rest(resolve_again_seconds);
  }
}

void wait_for_all(Store& store, const Rendezvous& rendezvous) {
  const double linger = rendezvous.rank == 0 ? std::clamp(rendezvous.timeout_seconds / 10,
                                                          linger_seconds_min, linger_seconds_max)
                                             : 0;
  const Deadline deadline = Deadline::after(rendezvous.timeout_seconds + linger);
  if (store.add(key_of(rendezvous.rank), 1, rendezvous.timeout_seconds) != 1) {
    check_world_size(store, rendezvous,
                     deadline.at_most(last_look_seconds));  // which explains the failure
    fail(ErrorCode::comm, "two processes say that they are rank {} at {}: give each its own RANK",
         rendezvous.rank, rendezvous.place);
  }
  check_world_size(store, rendezvous, deadline);
  if (store.add("arrivals", 1, rendezvous.timeout_seconds) == rendezvous.world_size)
    store.set(all_arrived, "");
  if (const auto answer = wait_for_arrivals(store, rendezvous, deadline)) {
    if (!answer->empty()) refuse_worlds(store, rendezvous, *answer);
    return;
  }
  const std::string missing = tell_missing(store, rendezvous);
  if (missing.empty()) return;
  fail(
      ErrorCode::timeout,
      "rendezvous timed out after {:g} s at {}: waiting for {}; see that all are started and reach "
      "this address and port, or raise --timeout",
      rendezvous.timeout_seconds, rendezvous.place, missing);
}

void refuse_together(Store& store, Store::Member member) noexcept {
  const auto key = [](int rank) {
    return fmt::format("refused/{}", rank);
  };
  try {
    store.set(key(member.rank), "");
    const Deadline deadline = Deadline::after(refusal_seconds);
    for (int rank = 1; rank < member.size && member.rank == 0; ++rank) {
      store.get(key(rank), deadline.remaining_seconds());
    }
  } catch (const std::exception&) {  // the original failure matters more
  }
}

}  // namespace dstrain::comm
