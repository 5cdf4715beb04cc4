#pragma once
#include <array>
#include <cstdlib>
#include <map>
#include <string>

#include "runtime/rank/worker_env.h"

namespace dstrain::test {

using Variables = std::map<std::string, std::string>;

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
                                    env::nodes,
                                    env::token,
                                    env::timeout,
                                    env::device,
                                    env::device_memory,
                                    env::host_memory,
                                    env::cross_rank,
                                    env::comm,
                                    env::io,
                                    "PET_NODE_RANK",
                                    "PET_NNODES",
                                    "NODE_RANK",
                                    "NNODES",
                                    "AZUREML_NODE_COUNT",
                                    "VC_TASK_INDEX",
                                    "VC_WORKER_NUM",
                                    "OMPI_COMM_WORLD_SIZE",
                                    "OMPI_COMM_WORLD_RANK",
                                    "OMPI_COMM_WORLD_LOCAL_RANK",
                                    "OMPI_COMM_WORLD_LOCAL_SIZE",
                                    "PMIX_RANK",
                                    "PMIX_NAMESPACE",
                                    "PMI_SIZE",
                                    "PMI_RANK",
                                    "MPI_LOCALRANKID",
                                    "MPI_LOCALNRANKS",
                                    "MV2_COMM_WORLD_SIZE",
                                    "PALS_SIZE",
                                    "JSM_NAMESPACE_SIZE",
                                    "FLUX_JOB_SIZE",
                                    "SLURM_CLUSTER_NAME",
                                    "SLURM_JOB_ID",
                                    "SLURM_JOB_NODELIST",
                                    "SLURM_LOCALID",
                                    "SLURM_NODEID",
                                    "SLURM_NTASKS",
                                    "SLURM_PROCID",
                                    "SLURM_RESTART_COUNT",
                                    "SLURM_STEP_ID",
                                    "SLURM_STEP_NODELIST",
                                    "SLURM_STEP_NUM_TASKS",
                                    "SLURM_STEP_TASKS_PER_NODE",
                                    "SLURM_TASKS_PER_NODE",
                                    "TORCHELASTIC_RUN_ID",
                                    "GROUP_RANK"};
  Variables before_;
};

}  // namespace dstrain::test
