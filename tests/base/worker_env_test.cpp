#include "runtime/base/worker_env.h"

#include <array>
#include <cstdlib>
#include <map>
#include <string>

#include <catch2/catch.hpp>

namespace dstrain {
namespace {

using Variables = std::map<std::string, std::string>;

/// This process's environment with exactly these of the variables a rank reads, for a scope.
class RankEnvironment {
 public:
  explicit RankEnvironment(const Variables& variables) {
    for (const char* const name : names) {
      if (const char* const value = std::getenv(name)) before_[name] = value;
      ::unsetenv(name);
    }
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  }
  RankEnvironment(const RankEnvironment&) = delete;
  RankEnvironment& operator=(const RankEnvironment&) = delete;
  RankEnvironment(RankEnvironment&&) = delete;
  RankEnvironment& operator=(RankEnvironment&&) = delete;
  ~RankEnvironment() {
    for (const char* const name : names) ::unsetenv(name);
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  static constexpr std::array names{env::rank,
                                    env::local_rank,
                                    env::world_size,
                                    env::master_addr,
                                    env::master_port,
                                    env::local_world_size,
                                    env::token,
                                    env::timeout,
                                    env::device_memory,
                                    env::cross_rank,
                                    env::comm,
                                    "OMPI_COMM_WORLD_SIZE",
                                    "PMI_SIZE",
                                    env::io,
                                    "OMPI_COMM_WORLD_RANK",
                                    "MV2_COMM_WORLD_SIZE",
                                    "PMI_RANK",
                                    "MPI_LOCALNRANKS",
                                    "PALS_SIZE",
                                    "JSM_NAMESPACE_SIZE",
                                    "FLUX_JOB_SIZE",
                                    "SLURM_STEP_NUM_TASKS",
                                    "SLURM_PROCID",
                                    "SLURM_NTASKS",
                                    "PMIX_RANK"};
  Variables before_;
};

}  // namespace

TEST_CASE("WorkerEnv: a process started by hand is rank 0 of 1", "[base][worker_env]") {
  const RankEnvironment environment(Variables{});
  const WorkerEnv worker = read_worker_env();
  CHECK(worker.rank == 0);
  CHECK(worker.world_size == 1);
  CHECK(worker.local_rank == 0);
  CHECK(worker.local_world_size == 1);
  CHECK(worker.master_addr == "127.0.0.1");
  CHECK(worker.master_port == 29500);
  CHECK(worker.token.empty());
  CHECK(worker.timeout_seconds == 600);
  CHECK(worker.device_memory_bytes == 0);
  CHECK(worker.node_rank == -1);
  CHECK(worker.mpi_world_size == 0);
  CHECK(worker.comm == CommKind::automatic);
  CHECK(worker.io == IoKind::automatic);
}

TEST_CASE("WorkerEnv: reads what the launcher sets", "[base][worker_env]") {
  const RankEnvironment environment(Variables{{"RANK", "5"},
                                              {"WORLD_SIZE", "8"},
                                              {"LOCAL_RANK", "1"},
                                              {"LOCAL_WORLD_SIZE", "4"},
                                              {"CROSS_RANK", "1"},
                                              {"OMPI_COMM_WORLD_SIZE", "8"},
                                              {"DSTRAIN_COMM", "gloo"},
                                              {"DSTRAIN_IO", "threads"},
                                              {"MASTER_ADDR", "w0"},
                                              {"MASTER_PORT", "65535"},
                                              {"DSTRAIN_TOKEN", "secret"},
                                              {"DSTRAIN_TIMEOUT", "30"},
                                              {"DSTRAIN_DEVICE_MEMORY", "8589934592"}});
  const WorkerEnv worker = read_worker_env();
  CHECK(worker.rank == 5);
  CHECK(worker.world_size == 8);
  CHECK(worker.local_rank == 1);
  CHECK(worker.local_world_size == 4);
  CHECK(worker.node_rank == 1);
  CHECK(worker.mpi_world_size == 8);
  CHECK(worker.comm == CommKind::gloo);
  CHECK(worker.io == IoKind::threads);
  CHECK(worker.master_addr == "w0");
  CHECK(worker.master_port == 65535);
  CHECK(worker.token == "secret");
  CHECK(worker.timeout_seconds == 30);
  CHECK(worker.device_memory_bytes == 8589934592);
}

TEST_CASE("WorkerEnv: a way to communicate that does not exist is refused", "[base][worker_env]") {
  const RankEnvironment environment(Variables{{"DSTRAIN_COMM", "nccl"}});
  CHECK_THROWS_WITH(read_worker_env(),
                    "DSTRAIN_COMM=nccl: use auto, shm, gloo, mpi or hierarchical");
}

TEST_CASE("WorkerEnv: a way to read files that does not exist is refused", "[base][worker_env]") {
  const RankEnvironment environment(Variables{{"DSTRAIN_IO", "aio"}});
  CHECK_THROWS_WITH(read_worker_env(), "DSTRAIN_IO=aio: use auto, uring or threads");
}

TEST_CASE("WorkerEnv: a variable that is no number in range is named", "[base][worker_env]") {
  const auto [name, value, most] = GENERATE(table<const char*, const char*, const char*>(
      {{"RANK", "", "1048576"},
       {"RANK", "two", "1048576"},
       {"RANK", "1.5", "1048576"},
       {"RANK", "-1", "1048576"},
       {"RANK", "+1", "1048576"},
       {"RANK", "1 ", "1048576"},
       {"WORLD_SIZE", "0x2", "1048576"},
       {"WORLD_SIZE", "1048577", "1048576"},
       {"LOCAL_RANK", "99999999999999999999", "1048576"},
       {"LOCAL_WORLD_SIZE", "many", "1048576"},
       {"CROSS_RANK", "a", "1048576"},
       {"MASTER_PORT", "65536", "65535"},
       {"DSTRAIN_TIMEOUT", "10s", "1048576"},
       {"DSTRAIN_DEVICE_MEMORY", "2GiB", "9223372036854775807"}}));
  const RankEnvironment environment(Variables{{name, value}});
  CHECK_THROWS_WITH(read_worker_env(), std::string("environment variable ") + name +
                                           " must be a number from 0 to " + most + ", got \"" +
                                           value + "\"");
}

TEST_CASE("WorkerEnv: a set that does not fit together is refused", "[base][worker_env]") {
  const Variables variables =
      GENERATE(Variables{{"RANK", "1"}}, Variables{{"WORLD_SIZE", "0"}},
               Variables{{"RANK", "2"}, {"WORLD_SIZE", "2"}},
               Variables{{"WORLD_SIZE", "4"}, {"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}},
               Variables{{"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "0"}},
               Variables{{"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "3"}});
  const RankEnvironment environment(variables);
  CHECK_THROWS_WITH(read_worker_env(), Catch::Contains("do not fit"));
}

TEST_CASE("WorkerEnv: kinds of errors have the statuses that users rely on", "[base][worker_env]") {
  const auto [code, expected] = GENERATE(table<ErrorCode, int>({{ErrorCode::usage, 2},
                                                                {ErrorCode::config, 2},
                                                                {ErrorCode::input, 2},
                                                                {ErrorCode::remote, 3},
                                                                {ErrorCode::timeout, 4},
                                                                {ErrorCode::io, 1},
                                                                {ErrorCode::out_of_memory, 1},
                                                                {ErrorCode::comm, 1},
                                                                {ErrorCode::internal, 1}}));
  CHECK(exit_status(code) == expected);
}

TEST_CASE("WorkerEnv: one of several tasks without a rank is refused", "[base][worker_env]") {
  const auto [variables, evidence] = GENERATE(table<Variables, std::string>(
      {{{{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "0"}, {"PMIX_RANK", "0"}},
        "OMPI_COMM_WORLD_SIZE=2: mpirun"},
       {{{"MV2_COMM_WORLD_SIZE", "4"}}, "MV2_COMM_WORLD_SIZE=4: mpirun"},
       {{{"PMI_SIZE", "3"}, {"PMI_RANK", "1"}}, "PMI_SIZE=3: mpirun"},
       {{{"MPI_LOCALNRANKS", "2"}}, "MPI_LOCALNRANKS=2: mpirun"},
       {{{"PALS_SIZE", "2"}}, "PALS_SIZE=2: mpiexec"},
       {{{"JSM_NAMESPACE_SIZE", "2"}}, "JSM_NAMESPACE_SIZE=2: jsrun"},
       {{{"FLUX_JOB_SIZE", "2"}}, "FLUX_JOB_SIZE=2: flux run"},
       {{{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "0"}}, "SLURM_STEP_NUM_TASKS=2: srun"},
       {{{"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "1"}}, "SLURM_PROCID=1: srun"},
       {{{"PMIX_RANK", "0"}}, "PMIX_RANK=0: mpirun"}}));
  const RankEnvironment environment(variables);
  CHECK_THROWS_WITH(read_worker_env(), Catch::Contains(evidence) &&
                                           Catch::Contains("dstrain --num_gpus N") &&
                                           Catch::Contains("WORLD_SIZE"));
  // With an identity of ours each is a rank of one job.
  for (const auto& [name, value] : Variables{{"RANK", "0"}, {"WORLD_SIZE", "2"}}) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  CHECK(read_worker_env().world_size == 2);
}

TEST_CASE("WorkerEnv: a single task or an allocation is not several", "[base][worker_env]") {
  const RankEnvironment environment(GENERATE(
      Variables{{"OMPI_COMM_WORLD_SIZE", "1"}, {"PMIX_RANK", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}},
      Variables{{"PMI_SIZE", "1"}, {"PMI_RANK", "0"}},
      Variables{{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}},
      Variables{{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}},
      Variables{{"SLURM_NTASKS", "8"}}));
  CHECK(read_worker_env().world_size == 1);
}

TEST_CASE("WorkerEnv: a rank needs its number and the world's size", "[base][worker_env]") {
  const RankEnvironment environment(
      GENERATE(Variables{{"WORLD_SIZE", "2"}}, Variables{{"RANK", "0"}}));
  CHECK_THROWS_WITH(read_worker_env(), Catch::Contains("a rank needs both"));
}

}  // namespace dstrain
