#include "runtime/session/joined_rank.h"

#include <algorithm>
#include <utility>

#include "runtime/backend/open_backend.h"
#include "runtime/base/error.h"
#include "runtime/os/gpu_files.h"

namespace dstrain::session {
namespace {

/// Where ranks share a device, the launcher has looked.
DeviceRoom own_room(const WorkerEnv& worker, Backend& backend) {
  if (shares_host_memory(backend.device().kind)) return {};
  if (worker.local_world_size > count_visible_gpu_files()) return {};
  return find_room(backend, worker.local_world_size);
}

comm::World join(const WorkerEnv& worker, const RankControl& control, ProgressPage& progress) {
  const InPhase meeting(&progress, RunPhase::meeting);
  return comm::join_world(worker, comm::news_for(control));
}

}  // namespace

DeviceRoom find_room(Backend& backend, int ranks) {
  if (shares_host_memory(backend.device().kind)) return {};
  const int devices = std::max(count_visible_gpu_files(), 1);
  const int sharing = (ranks + devices - 1) / devices;
  return {.free = backend.free_memory() / sharing, .gpu = backend.device().index % devices};
}

JoinedRank::JoinedRank(const WorkerEnv& worker,
                       DeviceKind device,
                       ProgressPage& progress,
                       Sessions sessions)
    : progress_(progress),
      control_(RankControl::from_environment()),
      backend_(open_backend({device, worker.local_rank})),
      room_(own_room(worker, *backend_)),
      world_(join(worker, control_, progress)),
      sessions_(sessions) {}

std::unique_ptr<comm::Communicator> JoinedRank::make_communicator() {
  DSTRAIN_CHECK(world_.communicator, "rank {} has its one session", worker().rank);
  if (sessions_ == Sessions::one) return std::move(world_.communicator);
  return world_.communicator->split({.color = 0, .key = worker().rank});
}

}  // namespace dstrain::session
