#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/environment.h"
#include "runtime/base/error.h"
#include "runtime/base/exit_status.h"
#include "runtime/rank/mpi_kind.h"
#include "runtime/rank/rank_nodes.h"

/// The contract between the launcher and the processes it starts: what a rank learns from its
/// environment.
namespace dstrain {

/// How the ranks of a job communicate: DSTRAIN_COMM, by these names.
enum class CommKind {
  automatic,     ///< "auto": shm on one node, else hierarchical
  shm,           ///< shared memory; all ranks on one node
  tcp,           ///< TCP between all ranks, those of one node too
  mpi,           ///< MPI likewise
  hierarchical,  ///< shm within nodes; between them MPI where it has started the job, else TCP
};
inline constexpr std::array<const char*, 5> comm_kind_names{"auto", "shm", "tcp", "mpi",
                                                            "hierarchical"};
constexpr const char* name_of(CommKind kind) {
  return comm_kind_names.at(static_cast<std::size_t>(kind));
}

/// How a rank reads and writes its swap files: DSTRAIN_IO, by these names.
enum class IoKind {
  automatic,  ///< "auto": uring, else threads
  uring,      ///< io_uring
  threads,    ///< threads with pread(2) and pwrite(2)
};

/// What a rank computes on: --device or DSTRAIN_DEVICE, by these names.
enum class DeviceChoice {
  automatic,  ///< "auto": a GPU where there are some and their plug-in is installed, else the CPU
  cpu,
  cuda,
};

/// What a rank learns from its environment. A process started by hand is rank 0 of 1.
struct WorkerEnv {
  int rank = 0;
  int world_size = 1;
  std::string world_claim;  ///< who says so, where that is a launcher by hand; else empty
  int local_rank = 0;
  int local_world_size = 1;
  int node_rank = -1;           ///< CROSS_RANK, or as the starter counts; -1: not said
  MpiKind mpi = MpiKind::none;  ///< MPI_COMM_WORLD has the ranks of this job, in their order
  CommKind comm = CommKind::automatic;
  IoKind io = IoKind::automatic;
  DeviceChoice device = DeviceChoice::automatic;
  std::string master_addr = "127.0.0.1";           ///< empty: MPI tells
  const char* master_variable = env::master_addr;  ///< which says that
  int master_port = 29500;                         ///< 0: MPI tells
  int master_ports = 1;  ///< rank 0 listens at the first free one of so many from `master_port` on
  std::string token;     ///< empty: MPI or `token_file` tells it, else there is none
  /// The token keeps jobs apart and is no secret, or there is none: only loopback is listened on.
  bool loopback_only = true;
  std::string token_file;  ///< the job that token_file.h knows the token of; empty: none
  double timeout_seconds = 600;
  RankNodes nodes{};                     ///< of all ranks, for messages
  std::int64_t device_memory_bytes = 0;  ///< 0: no budget
  std::int64_t host_memory_bytes = 0;    ///< of all ranks of the node; 0: what is available
};

/// As --device says, where it was typed, else as DSTRAIN_DEVICE does. Throws Error{usage}.
DeviceChoice read_device_choice(const std::optional<std::string>& typed = std::nullopt);

/// DSTRAIN_HOST_MEMORY, 0 where it is not set. Throws Error{usage}.
std::int64_t read_host_memory();

/// Reads the variables above; who this rank is also from those of mpirun, srun and torchrun
/// (starter.h). Throws Error{usage} that names a variable that is no number or out of range, a set
/// that does not fit together, two variables that contradict each other, or ranks that would meet
/// over a network without a token.
WorkerEnv read_worker_env();

/// The own part of the node's cores, of which ranks that nobody has bound to some of them see all:
/// the launcher says it by OMP_NUM_THREADS, others leave it to the ranks.
int core_share(const WorkerEnv& worker);

}  // namespace dstrain
