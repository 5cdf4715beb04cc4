#include "tests/comm/groups.h"

#include "runtime/comm/gloo/gloo_communicator.h"
#include "runtime/comm/shm/shm_communicator.h"
#include "runtime/comm/thread/thread_group.h"
#include "tests/comm/memory_store.h"
#include "tests/support/ranks.h"

namespace dstrain::test {
namespace {

/// `join(store, rank)` on a thread per rank.
Group join_threads(
    int size, const std::function<std::unique_ptr<comm::Communicator>(comm::Store&, int)>& join) {
  const auto store = std::make_shared<MemoryStore>();
  Group::Members members(static_cast<std::size_t>(size));
  run_ranks(size, [&](int rank) { members[static_cast<std::size_t>(rank)] = join(*store, rank); });
  return {std::move(members), store};
}

}  // namespace

void Group::abort() const {
  for (const auto& member : members_) {
    if (member) return member->abort();
  }
}

void Group::tell(int rank, const std::string& text) const {
  store_->set(fmt::format("{}/told/{}", name_, rank), text);
}

std::string Group::told(int rank) const {
  return store_->get(fmt::format("{}/told/{}", name_, rank), 60);
}

GroupMaker thread_groups() {
  return {"thread", [](int size, double timeout_seconds) {
            return Group(comm::make_thread_group(size, timeout_seconds),
                         std::make_shared<MemoryStore>());
          }};
}

GroupMaker shm_groups() {
  return {"shm", [](int size, double timeout_seconds) {
            return join_threads(size, [&](comm::Store& store, int rank) {
              return comm::make_shm_communicator(
                  store, {.rank = rank, .size = size, .timeout_seconds = timeout_seconds});
            });
          }};
}

GroupMaker gloo_groups() {
  return {"gloo", [](int size, double timeout_seconds) {
            return join_threads(size, [&](comm::Store& store, int rank) {
              return comm::make_gloo_communicator(
                  store, {.rank = rank, .size = size, .timeout_seconds = timeout_seconds});
            });
          }};
}

void run_group(const Group& group, const std::function<void(comm::Communicator&)>& body) {
  run_ranks(
      group.size(),
      [&](int rank) {
        if (group.has(rank)) body(group[rank]);
      },
      [&] { group.abort(); });
}

std::vector<Failed> failures_of_ranks(const Group& group,
                                      const std::function<void(comm::Communicator&)>& body) {
  run_ranks(group.size(), [&](int rank) {
    if (!group.has(rank)) return;
    try {
      body(group[rank]);
      group.tell(rank, "");
    } catch (const Error& error) {
      group.tell(rank, std::string(1, static_cast<char>(error.code())) + error.what());
    }
  });
  std::vector<Failed> failures;
  for (int rank = 0; rank < group.size(); ++rank) {
    const std::string told = group.told(rank);
    failures.push_back(told.empty() ? Failed{}
                                    : Failed{static_cast<ErrorCode>(told.front()), told.substr(1)});
  }
  return failures;
}

}  // namespace dstrain::test
