#pragma once
#include <memory>

#include "runtime/base/worker_env.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/store.h"

namespace dstrain::comm {

/// What a rank of a job holds to talk to the others. The communicator goes first.
struct World {
  std::unique_ptr<Store> store;  ///< null in a world of one
  std::unique_ptr<Communicator> communicator;
};

/// Meets the other ranks that the environment promises and returns once all are there.
/// `timeout_seconds` of `worker` bounds the rendezvous and each later wait of a collective.
/// Throws Error{timeout} that names the missing ranks, Error{comm}, or Error{config} when the ranks
/// are not all on one node.
World join_world(const WorkerEnv& worker);

}  // namespace dstrain::comm
