#include "runtime/comm/thread/thread_group.h"

#include "runtime/comm/thread/thread_communicator.h"

namespace dstrain::comm {

std::vector<std::unique_ptr<Communicator>> make_thread_group(int size, double timeout_seconds) {
  DSTRAIN_CHECK(size >= 1, "a group of {} threads", size);
  const auto world = std::make_shared<ThreadWorld>(size);
  std::vector<std::unique_ptr<Communicator>> group;
  for (int rank = 0; rank < size; ++rank) {
    group.push_back(std::make_unique<ThreadCommunicator>(
        world, Meeting::Options{.rank = rank, .timeout_seconds = timeout_seconds}));
  }
  return group;
}

}  // namespace dstrain::comm
