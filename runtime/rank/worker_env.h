#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/environment.h"
#include "runtime/base/error.h"
#include "runtime/base/exit_status.h"
#include "runtime/rank/mpi_kind.h"
#include "runtime/rank/rank_nodes.h"

/// The contract between the launcher and the processes it starts: the environment of a rank.
namespace dstrain {

/// How the ranks of a job communicate: DSTRAIN_COMM, with these names.
enum class CommKind {
  automatic,     ///< "auto": shm on one node, else hierarchical
  shm,           ///< shared memory; all ranks on one node
  tcp,           ///< TCP between all ranks, also within a node
  mpi,           ///< MPI between all ranks
  hierarchical,  ///< shm within nodes; between them MPI if it has started the job, else TCP
};
inline constexpr std::array<const char*, 5> comm_kind_names{"auto", "shm", "tcp", "mpi",
                                                            "hierarchical"};
constexpr const char* name_of(CommKind kind) {
  return comm_kind_names.at(static_cast<std::size_t>(kind));
}

/// How a rank reads and writes its swap files: DSTRAIN_IO, with these names.
enum class IoKind {
  automatic,  ///< "auto": uring, else threads
  uring,      ///< io_uring
  threads,    ///< threads with pread(2) and pwrite(2)
};

/// The device that a rank computes on: --device or DSTRAIN_DEVICE, with these names.
enum class DeviceChoice {
  automatic,  ///< "auto": a GPU if there is one and its plug-in is installed, else the CPU
  cpu,
  cuda,
};

/// The settings of a rank from its environment. A process started by hand is rank 0 of 1.
struct WorkerEnv {
  int rank = 0;
  int world_size = 1;
  std::string world_claim;  ///< source of world_size, if a launcher started by hand; else empty
  int local_rank = 0;
  int local_world_size = 1;
  int node_rank = -1;           ///< CROSS_RANK, or the starter's number; -1: not set
  MpiKind mpi = MpiKind::none;  ///< set if MPI_COMM_WORLD has the ranks of this job, in order
  CommKind comm = CommKind::automatic;
  IoKind io = IoKind::automatic;
  DeviceChoice device = DeviceChoice::automatic;
  std::string master_addr = "127.0.0.1";           ///< empty: from MPI
  const char* master_variable = env::master_addr;  ///< the variable that sets it
  int master_port = 29500;                         ///< 0: from MPI
  int master_ports = 1;  ///< rank 0 listens at the first free one of these, from `master_port` on
  std::string token;     ///< empty: from MPI or `token_file`, else there is none
  /// Listen only on loopback: there is no token, or it only separates jobs and is not secret.
  bool loopback_only = true;
  std::string token_file;  ///< job for job_token_file.h, which has the token; empty: none
  double timeout_seconds = 600;
  RankNodes nodes{};                     ///< of all ranks, for messages
  std::int64_t device_memory_bytes = 0;  ///< 0: no budget
  std::int64_t host_memory_bytes = 0;    ///< for all ranks of the node; 0: the available memory
};

/// Returns --device if it was given, else DSTRAIN_DEVICE. Throws Error{usage}.
DeviceChoice read_device_choice(const std::optional<std::string>& typed = std::nullopt);

/// Returns DSTRAIN_HOST_MEMORY, 0 if it is not set. Throws Error{usage}.
std::int64_t read_host_memory();

/// Reads the variables above, and this rank's identity also from those of mpirun, srun and torchrun
/// (starter.h). Throws Error{usage} that names a variable that is not a number or out of range, a
/// set of inconsistent variables, two that contradict each other, or ranks that would meet over a
/// network without a token.
WorkerEnv read_worker_env();

/// Returns this rank's share of the node's cores. The launcher sets it in OMP_NUM_THREADS; under
/// other starters, ranks that are not bound to some cores see all of them and divide them.
int core_share(const WorkerEnv& worker);

}  // namespace dstrain
