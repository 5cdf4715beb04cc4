#include "tests/comm/groups.h"

#include "runtime/comm/shm/shm_communicator.h"
#include "runtime/comm/thread/thread_group.h"
#include "tests/comm/memory_store.h"
#include "tests/support/ranks.h"

namespace dstrain::test {

GroupMaker thread_groups() {
  return {"thread", comm::make_thread_group};
}

GroupMaker shm_groups() {
  return {"shm", [](int size, double timeout_seconds) {
            MemoryStore store;
            Group group(static_cast<std::size_t>(size));
            run_ranks(size, [&](int rank) {
              group[static_cast<std::size_t>(rank)] = comm::make_shm_communicator(
                  store, {.rank = rank, .size = size, .timeout_seconds = timeout_seconds});
            });
            return group;
          }};
}

void run_group(const Group& group, const std::function<void(comm::Communicator&)>& body) {
  run_ranks(
      static_cast<int>(group.size()),
      [&](int rank) { body(*group[static_cast<std::size_t>(rank)]); },
      [&] { group.front()->abort(); });
}

std::vector<std::string> messages_of_ranks(const Group& group,
                                           const std::function<void(comm::Communicator&)>& body) {
  std::vector<std::string> messages(group.size());
  run_ranks(static_cast<int>(group.size()), [&](int rank) {
    try {
      body(*group[static_cast<std::size_t>(rank)]);
    } catch (const Error& error) {
      messages[static_cast<std::size_t>(rank)] = error.what();
    }
  });
  return messages;
}

}  // namespace dstrain::test
