#include "runtime/rank/starter.h"

#include "runtime/base/error.h"
#include "tests/base/rank_environment.h"
#include "tests/support/catch.h"

namespace dstrain {
namespace {

using Catch::Matchers::ContainsSubstring;
using test::RankEnvironment;
using test::Variables;

/// As each starter sets them for the third of four tasks, the first of the second node; taken down
/// from OpenMPI 4.1.4, MPICH 4.0.2, SLURM 22.05 and torchrun 1.13.
const Variables openmpi{{"OMPI_COMM_WORLD_RANK", "2"},
                        {"OMPI_COMM_WORLD_SIZE", "4"},
                        {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                        {"PMIX_RANK", "2"},
                        {"PMIX_NAMESPACE", "430178305"}};
const Variables mpich{
    {"PMI_RANK", "2"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}};
const Variables slurm{{"SLURM_CLUSTER_NAME", "c"},
                      {"SLURM_JOB_ID", "17"},
                      {"SLURM_STEP_ID", "0"},
                      {"SLURM_STEP_NUM_TASKS", "4"},
                      {"SLURM_PROCID", "2"},
                      {"SLURM_LOCALID", "0"},
                      {"SLURM_NODEID", "1"},
                      {"SLURM_STEP_NODELIST", "n[1-2]"},
                      {"SLURM_JOB_NODELIST", "n[0-9]"},
                      {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                      {"SLURM_TASKS_PER_NODE", "8(x9)"},
                      {"SLURM_NTASKS", "80"}};
const Variables torchrun{{"TORCHELASTIC_RUN_ID", "7f"}, {"RANK", "2"},
                         {"WORLD_SIZE", "4"},           {"LOCAL_RANK", "0"},
                         {"LOCAL_WORLD_SIZE", "2"},     {"GROUP_RANK", "1"},
                         {"MASTER_ADDR", "127.0.0.1"},  {"MASTER_PORT", "29500"}};

Variables with(Variables variables, const Variables& others) {
  for (const auto& [name, value] : others) variables[name] = value;
  return variables;
}

struct Row {
  std::string name;
  Variables variables;
  StarterKind kind;
  MpiKind mpi;
  int node;
};

std::vector<Row> rows() {
  return {{"OpenMPI", openmpi, StarterKind::openmpi, MpiKind::openmpi, -1},
          {"MPICH", mpich, StarterKind::mpich, MpiKind::mpich, -1},
          {"srun", slurm, StarterKind::slurm, MpiKind::none, 1},
          {"srun with PMIx", with(slurm, {{"PMIX_RANK", "2"}}), StarterKind::slurm,
           MpiKind::openmpi, 1},
          {"srun with PMI", with(slurm, {{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}}), StarterKind::slurm,
           MpiKind::mpich, 1},
          {"torchrun", torchrun, StarterKind::torchrun, MpiKind::none, 1},
          {"torchrun by srun", with(torchrun, with(slurm, {{"SLURM_STEP_NUM_TASKS", "2"}})),
           StarterKind::torchrun, MpiKind::none, 1},
          {"mpirun through srun", with(openmpi, with(slurm, {{"SLURM_PROCID", "1"}})),
           StarterKind::openmpi, MpiKind::openmpi, -1},
          {"hydra through srun", with(mpich, with(slurm, {{"SLURM_PROCID", "1"}})),
           StarterKind::mpich, MpiKind::mpich, -1}};
}

TEST_CASE("Starter: each kind gives a task its identity", "[base][starter]") {
  for (const Row& row : rows()) {
    CAPTURE(row.name);
    const RankEnvironment environment(row.variables);
    const std::optional<StartedTask> task = find_started_task();
    REQUIRE(task);
    CHECK(task->kind == row.kind);
    CHECK(task->rank.value == 2);
    CHECK(task->size.value == 4);
    CHECK(task->local_rank.value == 0);
    CHECK(task->local_size.value == 2);
    CHECK(task->node.value == row.node);
    CHECK(task->mpi == row.mpi);
    // And so a rank knows it.
    ::setenv("DSTRAIN_TOKEN", "secret", 1);
    const WorkerEnv worker = read_worker_env();
    CHECK(worker.rank == 2);
    CHECK(worker.world_size == 4);
    CHECK(worker.local_rank == 0);
    CHECK(worker.local_world_size == 2);
    CHECK(worker.node_rank == row.node);
    CHECK(worker.mpi == row.mpi);
    CHECK(worker.token == "secret");
    CHECK_FALSE(worker.loopback_only);
  }
}

TEST_CASE("Starter: two identities that differ are refused", "[base][starter]") {
  const auto [variables, left, right] = GENERATE(table<Variables, std::string, std::string>(
      {{with(openmpi, {{"RANK", "0"}, {"WORLD_SIZE", "4"}}), "RANK=0", "OMPI_COMM_WORLD_RANK=2"},
       {with(openmpi, {{"RANK", "2"}, {"WORLD_SIZE", "1"}}), "WORLD_SIZE=1",
        "OMPI_COMM_WORLD_SIZE=4"},
       {with(mpich, {{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}}), "LOCAL_RANK=1",
        "MPI_LOCALRANKID=0"},
       {with(slurm, {{"LOCAL_WORLD_SIZE", "4"}}), "LOCAL_WORLD_SIZE=4",
        "SLURM_STEP_TASKS_PER_NODE=2"},
       {with(slurm, {{"WORLD_SIZE", "2"}}), "WORLD_SIZE=2", "SLURM_STEP_NUM_TASKS=4"}}));
  const RankEnvironment environment(variables);
  CHECK_THROWS_WITH(read_worker_env(), ContainsSubstring(left) && ContainsSubstring(right) &&
                                           ContainsSubstring("contradict"));
}

TEST_CASE("Starter: the same identity twice is one", "[base][starter]") {
  const RankEnvironment environment(with(openmpi, {{"RANK", "2"},
                                                   {"WORLD_SIZE", "4"},
                                                   {"LOCAL_RANK", "0"},
                                                   {"LOCAL_WORLD_SIZE", "2"},
                                                   {"CROSS_RANK", "1"},
                                                   {"DSTRAIN_TOKEN", "t"}}));
  const WorkerEnv worker = read_worker_env();
  CHECK(worker.rank == 2);
  CHECK(worker.node_rank == 1);
}

TEST_CASE("Starter: missing and invalid numbers are named", "[base][starter]") {
  const auto [variables, words] = GENERATE(table<Variables, std::string>(
      {{with(openmpi, {{"OMPI_COMM_WORLD_RANK", "two"}}), "OMPI_COMM_WORLD_RANK=two"},
       {with(slurm, {{"SLURM_PROCID", "-1"}}), "SLURM_PROCID=-1"},
       {{{"MPI_LOCALNRANKS", "2"}}, "MPI_LOCALNRANKS is set"},
       {{{"TORCHELASTIC_RUN_ID", "a"}, {"RANK", "0"}}, "WORLD_SIZE is not"}}));
  const RankEnvironment environment(variables);
  CHECK_THROWS_WITH(read_worker_env(), ContainsSubstring(words));
}

TEST_CASE("Starter: a task whose rank cannot be determined is refused", "[base][starter]") {
  const auto [variables, evidence] = GENERATE(table<Variables, std::string>(
      {{{{"MV2_COMM_WORLD_SIZE", "4"}}, "MV2_COMM_WORLD_SIZE=4: mpirun of MVAPICH"},
       {{{"PMI_SIZE", "3"}, {"PMI_RANK", "1"}}, "PMI_SIZE=3: a starter with PMI"},
       {{{"PALS_SIZE", "2"}}, "PALS_SIZE=2: mpiexec of PALS"},
       {{{"JSM_NAMESPACE_SIZE", "2"}}, "JSM_NAMESPACE_SIZE=2: jsrun"},
       {{{"FLUX_JOB_SIZE", "2"}}, "FLUX_JOB_SIZE=2: flux run"},
       {{{"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "1"}}, "SLURM_PROCID=1: srun"},
       {{{"PMIX_RANK", "0"}}, "PMIX_RANK=0: a starter with PMIx"}}));
  const RankEnvironment environment(variables);
  CHECK_THROWS_WITH(read_worker_env(), ContainsSubstring(evidence) &&
                                           ContainsSubstring("dstrain --num_gpus N") &&
                                           ContainsSubstring("WORLD_SIZE"));
  CHECK_THROWS_WITH(check_started_alone(), ContainsSubstring(evidence));
  // With an identity of ours each is a rank of one job.
  for (const auto& [name, value] : Variables{{"RANK", "0"}, {"WORLD_SIZE", "2"}}) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  CHECK(read_worker_env().world_size == 2);
}

TEST_CASE("Starter: a single task or a bare allocation is not a multi-task job",
          "[base][starter]") {
  const RankEnvironment environment(GENERATE(
      Variables{{"OMPI_COMM_WORLD_SIZE", "1"},
                {"OMPI_COMM_WORLD_RANK", "0"},
                {"PMIX_RANK", "0"},
                {"SLURM_STEP_NUM_TASKS", "2"}},
      Variables{{"PMI_SIZE", "1"}, {"PMI_RANK", "0"}},
      Variables{{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}},
      Variables{{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}},
      Variables{{"SLURM_NTASKS", "8"}}));
  CHECK(read_worker_env().world_size == 1);
  check_started_alone();
}

TEST_CASE("Starter: a starter run by each task of another starter is refused", "[base][starter]") {
  const Variables here{{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
  const auto [variables, outer, inner] = GENERATE_COPY(table<Variables, std::string, std::string>(
      {{with(mpich, openmpi), "PMI_SIZE=4", "OMPI_COMM_WORLD_SIZE=4"},
       {with(slurm, with(openmpi, here)), "SLURM_STEP_NUM_TASKS=4", "OMPI_COMM_WORLD_SIZE=4"},
       {with(openmpi, with(torchrun, {{"WORLD_SIZE", "2"}, {"RANK", "0"}})),
        "OMPI_COMM_WORLD_SIZE=4", "WORLD_SIZE=2"}}));
  const RankEnvironment environment(variables);
  CHECK_THROWS_WITH(find_started_task(), ContainsSubstring(outer) && ContainsSubstring(inner) &&
                                             ContainsSubstring("as many"));
}

TEST_CASE("Starter: a starter run once per node by another is one job", "[base][starter]") {
  const RankEnvironment environment(
      GENERATE(with(slurm, openmpi), with(slurm, torchrun), with(openmpi, torchrun),
               with(openmpi, {{"MPI_LOCALNRANKS", "1"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "1"}})));
  CHECK(find_started_task()->size.value == 4);
}

TEST_CASE("Starter: a launcher started as one of several tasks is refused", "[base][starter]") {
  for (const Row& row : rows()) {
    CAPTURE(row.name);
    const RankEnvironment environment(row.variables);
    CHECK_THROWS_WITH(check_started_alone(),
                      ContainsSubstring("as one of") && ContainsSubstring("dstraind"));
  }
}

TEST_CASE("Starter: a process with a rank of unknown origin does not start ranks", "[base]") {
  const auto [variables, refused] = GENERATE(table<Variables, bool>(
      {{{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "10.0.0.1"}}, true},
       {{{"RANK", "0"}, {"LOCAL_RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_SIZE", "2"}}, true},
       {{{"PET_NODE_RANK", "0"}, {"PET_NNODES", "2"}, {"PET_NPROC_PER_NODE", "8"}}, true},
       {{{"NODE_RANK", "1"}, {"NNODES", "2"}}, true},
       {{{"NODE_RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "n1"}}, true},
       {{{"NODE_RANK", "0"}, {"AZUREML_NODE_COUNT", "2"}}, true},
       {{{"VC_TASK_INDEX", "1"}, {"VC_WORKER_NUM", "2"}}, true},
       {{{"RANK", "0"}, {"WORLD_SIZE", "1"}}, false},
       {{{"WORLD_SIZE", "8"}, {"NNODES", "2"}, {"MASTER_ADDR", "n1"}}, false},
       {{{"LOCAL_RANK", "1"}}, false}}));
  const RankEnvironment environment(variables);
  check_started_alone();
  if (!refused) return refuse_numbered_training();
  CHECK_THROWS_WITH(refuse_numbered_training(), ContainsSubstring("this process is one of 2") &&
                                                    ContainsSubstring("--no_ssh --num_nodes N") &&
                                                    ContainsSubstring("or unset "));
}

TEST_CASE("Starter: a child of a task is not a task itself", "[base][starter]") {
  for (const Row& row : rows()) {
    CAPTURE(row.name);
    const RankEnvironment environment(row.variables);
    forget_started_task();
    CHECK_FALSE(find_started_task());
    check_started_alone();
  }
}

TEST_CASE("Starter: tasks without a given address find a rendezvous", "[base][starter]") {
  SECTION("srun on one node: by what only its tasks have, at a port of their own") {
    const Variables one_node{{"SLURM_STEP_TASKS_PER_NODE", "4"}, {"SLURM_NODEID", "0"}};
    const auto port_of = [&](const char* job) {
      const RankEnvironment environment(with(with(slurm, one_node), {{"SLURM_JOB_ID", job}}));
      const WorkerEnv worker = read_worker_env();
      CHECK(worker.master_addr == "127.0.0.1");
      CHECK(worker.master_ports == 16);
      CHECK(worker.loopback_only);
      CHECK_THAT(worker.token, ContainsSubstring(job));
      CHECK(worker.token_file.empty());
      return worker.master_port;
    };
    // The ranks of a job may be built with different libraries, and must still agree.
    CHECK(port_of("17") == 20492);
    CHECK(port_of("18") == 23426);
  }
  SECTION("srun on several: at the first, by a file") {
    const RankEnvironment environment(slurm);
    const WorkerEnv worker = read_worker_env();
    CHECK(worker.master_addr == "n1");
    CHECK(worker.token.empty());
    CHECK_FALSE(worker.loopback_only);
    CHECK_THAT(worker.token_file, ContainsSubstring("17"));
  }
  SECTION("srun on several in an order of the user's: where the user says") {
    const Variables own_order = with(slurm, {{"SLURM_DISTRIBUTION", "arbitrary"}});
    {
      const RankEnvironment environment(own_order);
      CHECK_THROWS_WITH(read_worker_env(),
                        "SLURM_DISTRIBUTION=arbitrary: any of n[1-2] may run rank 0; set "
                        "MASTER_ADDR to the address of its node");
    }
    const RankEnvironment environment(with(own_order, {{"MASTER_ADDR", "n2"}}));
    CHECK(read_worker_env().master_addr == "n2");
  }
  SECTION("srun with an address and a port: there") {
    const RankEnvironment environment(
        with(slurm, {{"MASTER_ADDR", "n7"}, {"MASTER_PORT", "4711"}}));
    const WorkerEnv worker = read_worker_env();
    CHECK(worker.master_addr == "n7");
    CHECK(worker.master_port == 4711);
    CHECK(worker.master_ports == 1);
  }
  SECTION("torchrun: behind the port of its own store") {
    const RankEnvironment environment(torchrun);
    const WorkerEnv worker = read_worker_env();
    CHECK(worker.master_port == 29501);
    CHECK(worker.master_ports == 16);
    CHECK(worker.loopback_only);
  }
  SECTION("torchrun over a network: by a token only") {
    const RankEnvironment environment(with(torchrun, {{"MASTER_ADDR", "203.0.113.7"}}));
    CHECK_THROWS_WITH(read_worker_env(), ContainsSubstring("DSTRAIN_TOKEN is not set"));
  }
  SECTION("mpirun: MPI tells") {
    const RankEnvironment environment(GENERATE(openmpi, mpich));
    const WorkerEnv worker = read_worker_env();
    CHECK(worker.master_addr.empty());
    CHECK(worker.master_port == 0);
    CHECK(worker.token.empty());
    CHECK(worker.token_file.empty());
  }
}

}  // namespace
}  // namespace dstrain
