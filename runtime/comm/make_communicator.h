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

/// What a rank of a job holds to talk to the others. The communicator goes first, then MPI, which
/// waits for the others, then the control group, then the store, which may be rank 0's.
struct World {
  WorkerEnv worker;              ///< as joined: also where the ranks met
  std::unique_ptr<Store> store;  ///< null in a world of one
  std::unique_ptr<ControlGroup> control;
  std::shared_ptr<MpiLibrary> mpi;  ///< shared with the communicator; null where MPI has no part
  std::unique_ptr<Communicator> communicator;
};

/// Who is told why a rank does not get on with joining.
struct JoinNews {
  TellAwaited awaited{};          ///< as Rendezvous::tell
  TellUnreachable unreachable{};  ///< kept by the World: it must outlive that
};

/// That `control` tells the agent, which is borrowed.
JoinNews news_for(const RankControl& control);

/// Waits for the other ranks that the environment promises and returns once all are there. Where
/// MPI has started them all and the environment does not say where they meet, they agree through
/// MPI. The ranks of one node share memory; where there are several nodes, messages go between
/// them, through MPI where mpirun has started all ranks, else over TCP. DSTRAIN_COMM, equal on all
/// ranks, says otherwise (CommKind). `timeout_seconds` bounds the rendezvous and each later wait of
/// a collective. `alike`: what this rank was told to do, which must be the same on all ranks
/// (alike_ranks.h). Throws Error{timeout} that names the missing
/// ranks, Error{comm}, or Error{config} when the ranks do not agree about that or their nodes, or
/// the build lacks what is asked for.
World join_world(WorkerEnv worker, std::span<const std::string> alike, const JoinNews& news = {});

/// Enters MPI as the ranks of a job that it has started; once per process. As MpiLibrary().
std::shared_ptr<MpiLibrary> enter_mpi(const WorkerEnv& worker);

}  // namespace dstrain::comm
