#include "runtime/base/worker_env.h"

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>

#include "runtime/base/number.h"
#include "runtime/base/parallel_start.h"

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

/// OpenMPI's mpirun sets the one, MPICH's and SLURM's PMI the other.
int mpi_world_size() {
  return int_from_env("OMPI_COMM_WORLD_SIZE", int_from_env("PMI_SIZE", 0));
}

CommKind comm_kind() {
  const char* const text = std::getenv(env::comm);
  const std::string_view name = text == nullptr ? "auto" : text;
  if (name == "auto") return CommKind::automatic;
  if (name == "shm") return CommKind::shm;
  if (name == "gloo") return CommKind::gloo;
  if (name == "mpi") return CommKind::mpi;
  if (name == "hierarchical") return CommKind::hierarchical;
  fail(ErrorCode::usage, "{}={}: use auto, shm, gloo, mpi or hierarchical", env::comm, name);
}

IoKind io_kind() {
  const char* const text = std::getenv(env::io);
  const std::string_view name = text == nullptr ? "auto" : text;
  if (name == "auto") return IoKind::automatic;
  if (name == "uring") return IoKind::uring;
  if (name == "threads") return IoKind::threads;
  fail(ErrorCode::usage, "{}={}: use auto, uring or threads", env::io, name);
}

}  // namespace

int exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage:
    case ErrorCode::config:
    case ErrorCode::input:
      return status::bad_input;
    case ErrorCode::remote:
      return status::could_not_launch;
    case ErrorCode::timeout:
      return status::timed_out;
    default:
      return status::failed;
  }
}

WorkerEnv read_worker_env() {
  WorkerEnv worker;
  worker.rank = int_from_env(env::rank, worker.rank);
  worker.world_size = int_from_env(env::world_size, worker.world_size);
  worker.local_rank = int_from_env(env::local_rank, worker.local_rank);
  worker.local_world_size = int_from_env(env::local_world_size, worker.world_size);
  if (std::getenv(env::cross_rank) != nullptr) worker.node_rank = int_from_env(env::cross_rank, 0);
  worker.mpi_world_size = mpi_world_size();
  worker.comm = comm_kind();
  worker.io = io_kind();
  worker.master_port = int_from_env(env::master_port, worker.master_port, 65535);
  worker.timeout_seconds = int_from_env(env::timeout, 600);
  worker.device_memory_bytes =
      integer_from_env(env::device_memory, 0, std::numeric_limits<std::int64_t>::max());
  const char* const device = std::getenv(env::device);
  if (device != nullptr && std::string_view(device) != "auto" &&
      std::string_view(device) != "cpu") {
    fail(ErrorCode::usage, "{}={}: this build computes on the CPU only; use auto or cpu",
         env::device, device);
  }
  if (const char* address = std::getenv(env::master_addr)) worker.master_addr = address;
  if (const char* token = std::getenv(env::token)) worker.token = token;
  if (worker.rank >= worker.world_size || worker.local_rank >= worker.local_world_size ||
      worker.local_world_size > worker.world_size) {
    fail(ErrorCode::usage, "RANK={} WORLD_SIZE={} LOCAL_RANK={} LOCAL_WORLD_SIZE={} do not fit",
         worker.rank, worker.world_size, worker.local_rank, worker.local_world_size);
  }
  const bool has_rank = std::getenv(env::rank) != nullptr;
  if (has_rank != (std::getenv(env::world_size) != nullptr)) {
    fail(ErrorCode::usage, "{} is set and {} is not: a rank needs both",
         has_rank ? env::rank : env::world_size, has_rank ? env::world_size : env::rank);
  }
  if (!has_rank) check_started_alone();
  return worker;
}

}  // namespace dstrain
