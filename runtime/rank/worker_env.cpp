#include "runtime/rank/worker_env.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include "runtime/base/number.h"
#include "runtime/base/sha256.h"
#include "runtime/os/control_groups.h"
#include "runtime/os/socket.h"
#include "runtime/rank/port_range.h"
#include "runtime/rank/slurm_host_list.h"
#include "runtime/rank/starter.h"

namespace dstrain {
namespace {

std::int64_t integer_from_env(const char* name, std::int64_t fallback, std::int64_t most) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return fallback;
  const std::optional<std::int64_t> value = parse_number<std::int64_t>(text);
  if (!value || *value < 0 || *value > most) {
    fail(ErrorCode::usage, "environment variable {} must be a number from 0 to {}, got \"{}\"",
         name, most, text);
  }
  return *value;
}

int int_from_env(const char* name, int fallback, int most = 1 << 20) {
  return static_cast<int>(integer_from_env(name, fallback, most));
}

CommKind comm_kind() {
  const char* const text = std::getenv(env::comm);
  const std::string_view name = text == nullptr ? name_of(CommKind::automatic) : text;
  const auto found = std::ranges::find(comm_kind_names, name);
  if (found != comm_kind_names.end()) {
    return static_cast<CommKind>(found - comm_kind_names.begin());
  }
  fail(ErrorCode::usage, "{}={}: use auto, shm, tcp, mpi or hierarchical", env::comm, name);
}

IoKind io_kind() {
  const char* const text = std::getenv(env::io);
  const std::string_view name = text == nullptr ? "auto" : text;
  if (name == "auto") return IoKind::automatic;
  if (name == "uring") return IoKind::uring;
  if (name == "threads") return IoKind::threads;
  fail(ErrorCode::usage, "{}={}: use auto, uring or threads", env::io, name);
}

/// If several jobs may use one machine, each tries this many ports.
constexpr int shared_ports = 16;
constexpr int derived_port_min = 15'000;  // below the range of ephemeral ports
constexpr int derived_port_count = 14'000;

void check_same(const char* name, const TaskNumber& told) {
  if (told.variable == nullptr || std::getenv(name) == nullptr) return;
  const int own = int_from_env(name, 0);
  if (own == told.value) return;
  fail(ErrorCode::usage,
       "{}={} and {}={} contradict each other: unset {}, which may be left over from another job, "
       "or start this process outside of what set the other",
       name, own, told.variable, told.value, name);
}

/// Tasks of one starter are the ranks of one job. CROSS_RANK overrides their nodes.
void take_identity(const StartedTask& task, WorkerEnv& worker) {
  check_same(env::rank, task.rank);
  check_same(env::world_size, task.size);
  worker.rank = task.rank.value;
  worker.world_size = task.size.value;
  worker.mpi = task.mpi;
  if (std::getenv(env::cross_rank) != nullptr) return;
  check_same(env::local_rank, task.local_rank);
  check_same(env::local_world_size, task.local_size);
  worker.local_rank = std::max(task.local_rank.value, 0);
  worker.local_world_size = task.local_size.value > 0 ? task.local_size.value : worker.world_size;
  worker.node_rank = task.node.value;
}

void read_identity(const std::optional<StartedTask>& task, WorkerEnv& worker) {
  const bool has_rank = std::getenv(env::rank) != nullptr;
  worker.rank = int_from_env(env::rank, worker.rank);
  worker.world_size = int_from_env(env::world_size, worker.world_size);
  worker.local_rank = int_from_env(env::local_rank, worker.local_rank);
  worker.local_world_size = int_from_env(env::local_world_size, worker.world_size);
  if (task) take_identity(*task, worker);
  if (std::getenv(env::cross_rank) != nullptr) worker.node_rank = int_from_env(env::cross_rank, 0);
  if (worker.rank >= worker.world_size || worker.local_rank >= worker.local_world_size ||
      worker.local_world_size > worker.world_size) {
    fail(ErrorCode::usage,
         "RANK={} WORLD_SIZE={} LOCAL_RANK={} LOCAL_WORLD_SIZE={} are inconsistent: RANK must be "
         "below WORLD_SIZE, LOCAL_RANK below LOCAL_WORLD_SIZE, and LOCAL_WORLD_SIZE at most "
         "WORLD_SIZE; set them "
         "so, or unset all four to run one rank",
         worker.rank, worker.world_size, worker.local_rank, worker.local_world_size);
  }
  if (!task && has_rank != (std::getenv(env::world_size) != nullptr)) {
    const auto [set, unset] =
        has_rank ? std::pair(env::rank, env::world_size) : std::pair(env::world_size, env::rank);
    fail(ErrorCode::usage,
         "{} is set and {} is not: a rank needs both; set {} too, or unset {} to run one rank", set,
         unset, unset, set);
  }
}

/// Returns the node of SLURM's task 0, which is the first of the list unless the user's own list
/// places the tasks.
std::string first_host(const std::string& host_list) {
  const char* const distribution = std::getenv("SLURM_DISTRIBUTION");
  if (distribution != nullptr && std::string_view(distribution).starts_with("arbitrary")) {
    fail(ErrorCode::usage,
         "SLURM_DISTRIBUTION={}: any of {} may run rank 0; set {} to the address of its node",
         distribution, host_list, env::master_addr);
  }
  const Result<std::vector<std::string>> hosts = expand_host_list(host_list);
  if (hosts.ok() && !hosts.value().empty()) return hosts.value().front();
  fail(ErrorCode::usage, "{} is not set, and SLURM's list of nodes, \"{}\", names no host",
       env::master_addr, host_list);
}

/// Returns one of `count` ports from `first` on, the same on all ranks and in every build.
int derived_port(const std::string& job, int first, int count) {
  const Digest digest = sha256(job);
  return first + (digest[0] << 8 | digest[1]) % count;
}

/// Sets the ports of the rendezvous of a job for which none is given.
void derive_ports(const std::string& job, WorkerEnv& worker) {
  worker.master_ports = shared_ports;
  const auto range = read_port_range();
  if (!range) {
    worker.master_port = derived_port(job, derived_port_min, derived_port_count);
    return;
  }
  const int all = range->last - range->first + 1;
  worker.master_ports = std::min(all, shared_ports);
  worker.master_port = derived_port(job, range->first, all - worker.master_ports + 1);
}

/// torchrun's own store uses MASTER_PORT; SLURM sets no port for its steps.
void find_port(const StartedTask& task, WorkerEnv& worker) {
  const bool given = std::getenv(env::master_port) != nullptr;
  if (task.kind == StarterKind::torchrun) {
    worker.master_port += 1;
    worker.master_ports = shared_ports;
  } else if (!given) {
    derive_ports(task.job, worker);
  }
}

/// Sets the address and token of a starter's tasks, unless they are given.
void find_rendezvous(const StartedTask& task, WorkerEnv& worker) {
  if (task.mpi != MpiKind::none) {
    if (std::getenv(env::master_addr) == nullptr) worker.master_addr.clear();
    if (std::getenv(env::master_port) == nullptr) worker.master_port = 0;
    return;
  }
  find_port(task, worker);
  const bool one_node = worker.local_world_size == worker.world_size;
  if (std::getenv(env::master_addr) == nullptr && !one_node) {
    worker.master_addr = first_host(task.host_list);
    worker.master_variable = task.host_list_variable;
  }
  if (!worker.token.empty()) return;
  if (one_node) {
    worker.token = fmt::format("{} {}", task.job, worker.master_port);
  } else if (task.kind != StarterKind::torchrun) {
    worker.token_file = task.job;
    worker.loopback_only = false;
  }
}

/// Without a token, no rank listens where strangers could join, so the others would wait forever.
void check_token(const WorkerEnv& worker, bool says_its_node) {
  const bool by_mpi = worker.mpi != MpiKind::none;
  const bool one_node = says_its_node && worker.local_world_size == worker.world_size;
  if (!worker.loopback_only || by_mpi || one_node || worker.world_size == 1) return;
  if (is_loopback(worker.master_addr)) return;
  fail(ErrorCode::usage,
       "{} is not set: ranks on several nodes, which meet at {}, need their own secret; export the "
       "same random text on every node, for example from `openssl rand -hex 16`",
       env::token, worker.master_addr);
}

/// Returns the nodes that the launcher has set; else nodes with as many ranks as this one, if
/// possible.
RankNodes find_nodes(const WorkerEnv& worker) {
  const char* const text = std::getenv(env::nodes);
  RankNodes told = decode_rank_nodes(text != nullptr ? text : "", worker.world_size);
  const int size = worker.local_world_size;
  const bool alike = size < worker.world_size && worker.world_size % size == 0 &&
                     worker.rank == worker.node_rank * size + worker.local_rank;
  if (!told.empty() || !alike) return told;
  return RankNodes(static_cast<std::size_t>(worker.world_size / size), RankNode{"", size});
}

}  // namespace

int core_share(const WorkerEnv& worker) {
  const int online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  const int cores = std::min(int_from_env("SLURM_CPUS_ON_NODE", online), online);
  return std::max(cores_within_quota(cores) / worker.local_world_size, 1);
}

DeviceChoice read_device_choice(const std::optional<std::string>& typed) {
  const char* const text = std::getenv(env::device);
  const std::string name = typed ? *typed : text != nullptr ? text : "auto";
  if (name == "auto") return DeviceChoice::automatic;
  if (name == "cpu") return DeviceChoice::cpu;
  if (name == "cuda") return DeviceChoice::cuda;
  fail(ErrorCode::usage, "{}={}: use auto, cpu or cuda", typed ? "--device" : env::device, name);
}

std::int64_t read_host_memory() {
  return integer_from_env(env::host_memory, 0, std::numeric_limits<std::int64_t>::max());
}

WorkerEnv read_worker_env() {
  WorkerEnv worker;
  std::optional<StartedTask> task = find_started_task();
  if (!task && std::getenv(env::rank) == nullptr) refuse_unknown_tasks();
  if (task && task->size.value <= 1) task.reset();
  read_identity(task, worker);
  if (const char* claim = std::getenv(env::world_claim)) worker.world_claim = claim;
  worker.comm = comm_kind();
  worker.io = io_kind();
  worker.device = read_device_choice();
  worker.master_port = int_from_env(env::master_port, worker.master_port, 65535);
  if (worker.master_port == 0) {
    fail(ErrorCode::usage, "{}=0: the ranks need to know the port that they meet at",
         env::master_port);
  }
  worker.timeout_seconds = int_from_env(env::timeout, 600);
  worker.device_memory_bytes =
      integer_from_env(env::device_memory, 0, std::numeric_limits<std::int64_t>::max());
  worker.host_memory_bytes = read_host_memory();
  if (const char* address = std::getenv(env::master_addr)) worker.master_addr = address;
  if (const char* token = std::getenv(env::token)) worker.token = token;
  worker.loopback_only = worker.token.empty();
  if (task) find_rendezvous(*task, worker);
  worker.nodes = find_nodes(worker);
  check_token(worker, task || std::getenv(env::local_world_size) != nullptr);
  return worker;
}

}  // namespace dstrain
