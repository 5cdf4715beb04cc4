#pragma once
#include <memory>
#include <span>
#include <string>

#include "runtime/comm/communicator.h"
#include "runtime/comm/control/control_group.h"
#include "runtime/comm/rendezvous.h"
#include "runtime/comm/store.h"
#include "runtime/comm/tcp/tcp_mesh.h"
#include "runtime/rank/rank_control.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::comm {

class MpiLibrary;

/// A rank's connections to the others. Destroyed in this order: the communicator, then MPI, which
/// waits for the others, then the control group, then the store, which rank 0 may serve.
struct World {
  WorkerEnv worker;              ///< as joined: also has the address where the ranks met
  std::unique_ptr<Store> store;  ///< null with one rank
  std::unique_ptr<ControlGroup> control;
  std::shared_ptr<MpiLibrary> mpi;  ///< shared with the communicator; null if MPI is not used
  std::unique_ptr<Communicator> communicator;
};

/// Callbacks that tell why a rank makes no progress in joining.
struct JoinNews {
  TellAwaited awaited{};          ///< as Rendezvous::tell
  TellUnreachable unreachable{};  ///< kept by the World, so it must outlive that
};

/// Returns callbacks that make `control`, which is borrowed, tell the agent.
JoinNews news_for(const RankControl& control);

/// Waits for the other ranks that the environment promises and returns once all are there. If MPI
/// has started all of them and the environment does not say where they meet, they agree through
/// MPI. The ranks of one node share memory; between nodes, messages go through MPI if mpirun has
/// started all ranks, else over TCP. DSTRAIN_COMM, equal on all ranks, overrides this (CommKind).
/// `timeout_seconds` bounds the rendezvous and each later wait of a collective. Throws
/// Error{timeout} that names the missing ranks, Error{comm}, or Error{config} if the ranks do not
/// agree about their environment or their nodes, or if the build lacks what is asked for.
World join_world(WorkerEnv worker, const JoinNews& news = {});

/// Compares the settings of this rank that must be the same on all ranks: require_alike_ranks(). A
/// rank that fails waits until the others know why. Collective.
void require_alike(const World& world, std::span<const std::string> own);

/// Enters MPI as a rank of a job that it has started; once per process. Throws as MpiLibrary().
std::shared_ptr<MpiLibrary> enter_mpi(const WorkerEnv& worker);

}  // namespace dstrain::comm
