#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/mpi_kind.h"
#include "runtime/base/rank_nodes.h"

/// The contract between the launcher and the processes it starts: names in the environment of a
/// rank, and exit statuses.
namespace dstrain {

namespace env {
inline constexpr const char* rank = "RANK";
inline constexpr const char* local_rank = "LOCAL_RANK";
inline constexpr const char* world_size = "WORLD_SIZE";
inline constexpr const char* local_world_size = "LOCAL_WORLD_SIZE";
inline constexpr const char* local_size = "LOCAL_SIZE";
inline constexpr const char* cross_rank = "CROSS_RANK";
inline constexpr const char* cross_size = "CROSS_SIZE";
inline constexpr const char* master_addr = "MASTER_ADDR";
inline constexpr const char* master_port = "MASTER_PORT";
inline constexpr const char* omp_num_threads = "OMP_NUM_THREADS";
inline constexpr const char* token = "DSTRAIN_TOKEN";  ///< guards the rendezvous
inline constexpr const char* token_directory = "DSTRAIN_TOKEN_DIRECTORY";  ///< see token_file.h
inline constexpr const char* job = "DSTRAIN_JOB";          ///< the id printed at start
inline constexpr const char* comm = "DSTRAIN_COMM";        ///< how ranks communicate
inline constexpr const char* io = "DSTRAIN_IO";            ///< how swap files are read and written
inline constexpr const char* timeout = "DSTRAIN_TIMEOUT";  ///< rendezvous, in seconds
inline constexpr const char* checked = "DSTRAIN_CHECKED";  ///< 1: the launcher has looked at files
inline constexpr const char* restart_count = "DSTRAIN_RESTART_COUNT";  ///< absent the first time
/// What a launcher that others of the same job do not know of says of the number of ranks: who says
/// it, and by which options. For messages.
inline constexpr const char* world_claim = "DSTRAIN_WORLD_CLAIM";
inline constexpr const char* kept_batch = "DSTRAIN_KEPT_BATCH";  ///< of an elastic job
inline constexpr const char* silence = "DSTRAIN_SILENCE";  ///< seconds until a silent host is lost
inline constexpr const char* hang =
    "DSTRAIN_HANG";  ///< least seconds until a hang is reported; 0: never
/// Folders with a colon between them that plug-ins are looked for in, before all others.
inline constexpr const char* plug_in_path = "DSTRAIN_PLUGIN_PATH";
/// Where the device files of GPUs are counted, for tests; absent: /dev.
inline constexpr const char* gpu_directory = "DSTRAIN_GPU_DIRECTORY";
inline constexpr const char* log_level = "DSTRAIN_LOG_LEVEL";          ///< as --log_level
inline constexpr const char* device = "DSTRAIN_DEVICE";                ///< auto, cpu or cuda
inline constexpr const char* device_memory = "DSTRAIN_DEVICE_MEMORY";  ///< bytes per rank
inline constexpr const char* host_memory = "DSTRAIN_HOST_MEMORY";      ///< bytes per node
}  // namespace env

namespace status {
inline constexpr int done = 0;
inline constexpr int failed = 1;
inline constexpr int bad_input = 2;         ///< usage, config, hostfile, data or model file
inline constexpr int could_not_launch = 3;  ///< host or MASTER_ADDR unreachable, program missing
inline constexpr int timed_out = 4;         ///< rendezvous or collective
inline constexpr int unsaved =
    74;  ///< trained to the end, but what it was to leave is not all there
inline constexpr int stopped_with_checkpoint = 75;
inline constexpr int interrupted = 130;
}  // namespace status

/// The exit status of a process that ends with an error of this kind.
int exit_status(ErrorCode code);

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
