#include <filesystem>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "runtime/base/worker_env.h"
#include "runtime/comm/mpi/mpi_transport.h"
#include "tests/support/rank_process.h"
#include "tests/support/skip.h"

using namespace dstrain;
using namespace dstrain::test;
using Catch::Matchers::Contains;

/// Ranks that mpirun starts.
namespace {

constexpr const char* mpirun = "/usr/bin/mpirun.openmpi";
constexpr const char* plugin_path = "LD_LIBRARY_PATH=" DSTRAIN_PLUGIN_FOLDER;

void skip_without_mpi() {
  if (!comm::has_mpi() || !std::filesystem::exists(mpirun)) {
    skip("needs libopenmpi-dev at build time and openmpi-bin");
  }
}

/// `tail` is the program and its arguments.
Program under_mpirun(int ranks, std::vector<std::string> tail, std::vector<std::string> variables) {
  // OpenMPI leaves memory behind, which the address sanitizer would tell.
  Program program{{mpirun, "-np", std::to_string(ranks), "--oversubscribe", "--bind-to", "none"},
                  {plugin_path, "ASAN_OPTIONS=detect_leaks=0", "PATH=/usr/bin:/bin", "HOME=/tmp",
                   "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                   "OMP_NUM_THREADS=1", fmt::format("{}=127.0.0.1", env::master_addr),
                   fmt::format("{}={}", env::master_port, free_port()),
                   fmt::format("{}=secret", env::token), fmt::format("{}=300", env::timeout)}};
  program.arguments.insert(program.arguments.end(), tail.begin(), tail.end());
  program.environment.insert(program.environment.end(), variables.begin(), variables.end());
  return program;
}

void run_suite(const std::string& tests) {
  skip_without_mpi();
  RankProcess run(under_mpirun(4, {DSTRAIN_COMM_SUITE, tests}, {}));
  INFO(run.read_all());
  CHECK(run.wait() == 0);
}

}  // namespace

TEST_CASE("MpiCommunicator: conformance under mpirun", "[comm]") {
  run_suite("[mpi]");
}

TEST_CASE("HierarchicalCommunicator: conformance with MPI between nodes", "[comm]") {
  skip_without_mpi();
  const auto node = [](const char* number) {
    return std::vector<std::string>{"/usr/bin/env",     number,
                                    "LOCAL_RANK=0",     "LOCAL_WORLD_SIZE=2",
                                    DSTRAIN_COMM_SUITE, "[shm_and_mpi]"};
  };
  std::vector<std::string> both = node("CROSS_RANK=0");
  both.insert(both.end(), {":", "-np", "2"});
  const std::vector<std::string> second = node("CROSS_RANK=1");
  both.insert(both.end(), second.begin(), second.end());
  RankProcess run(under_mpirun(2, both, {}));
  INFO(run.read_all());
  CHECK(run.wait() == 0);
}

TEST_CASE("MpiCommunicator: a rank that dies ends the job", "[comm]") {
  skip_without_mpi();
  RankProcess run(under_mpirun(3, {DSTRAIN_COMM_RANK, "die"}, {"DSTRAIN_COMM=mpi"}));
  const std::string output = run.read_all();
  CHECK_THAT(output, Contains("signal 9"));
  CHECK(run.wait() != 0);
}

TEST_CASE("MpiCommunicator: is taken where mpirun has started the job", "[comm]") {
  skip_without_mpi();
  RankProcess run(under_mpirun(2, {DSTRAIN_COMM_RANK, "once"}, {"DSTRAIN_COMM=mpi"}));
  const std::string output = run.read_all();
  CAPTURE(output);
  CHECK_THAT(output, Contains("half 1"));
  CHECK(run.wait() == 0);
}

TEST_CASE("MpiCommunicator: one process that mpirun has not started is told", "[comm]") {
  skip_without_mpi();
  std::vector<RankProcess> ranks;
  const int port = free_port();
  for (RankPlace place : places_of({2})) {
    place.port = port;
    std::vector<std::string> environment = environment_of(place);
    environment.insert(environment.end(),
                       {"DSTRAIN_COMM=mpi", plugin_path, "HOME=/tmp", "ASAN_OPTIONS=detect_leaks=0",
                        "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"});
    ranks.emplace_back(Program{{DSTRAIN_COMM_RANK, "once"}, environment});
  }
  for (RankProcess& rank : ranks) {
    CHECK_THAT(rank.read_all(), Contains("MPI_COMM_WORLD has 1 ranks, the job 2"));
    CHECK(rank.wait() == status::bad_input);
  }
}
