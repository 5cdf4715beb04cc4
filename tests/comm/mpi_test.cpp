#include <csignal>
#include <filesystem>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "runtime/base/mpi_kind.h"
#include "runtime/base/worker_env.h"
#include "runtime/comm/mpi/mpi_library.h"
#include "tests/support/rank_process.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using namespace dstrain::test;
using Catch::Matchers::Contains;

/// Ranks that mpirun starts, the one of the library that this program is built for.
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr MpiKind kind = MpiKind::DSTRAIN_MPI_KIND;
constexpr bool is_openmpi = kind == MpiKind::openmpi;
constexpr const char* mpirun = is_openmpi ? "/usr/bin/mpirun.openmpi" : "/usr/bin/mpirun.mpich";
const fs::path plugin_folder = DSTRAIN_PLUGIN_FOLDER;

void skip_without_mpi() {
  if (!fs::exists(plugin_folder / comm::mpi_plugin_name(kind)) || !fs::exists(mpirun)) {
    skip(is_openmpi ? "needs libopenmpi-dev at build time and openmpi-bin"
                    : "needs libmpich-dev at build time and mpich");
  }
}

/// What mpirun needs here, whichever it is.
Words environment() {
  // MPI leaves memory behind, which the address sanitizer would tell.
  return {"LD_LIBRARY_PATH=" + plugin_folder.string(),
          "ASAN_OPTIONS=detect_leaks=0",
          "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
          "HOME=/tmp",
          "OMPI_ALLOW_RUN_AS_ROOT=1",
          "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
          "OMP_NUM_THREADS=1",
          fmt::format("{}=300", env::timeout)};
}

/// What says where ranks meet, when they are not to find out through MPI.
Words meeting_point(const char* comm = "auto") {
  return {fmt::format("{}=127.0.0.1", env::master_addr),
          fmt::format("{}={}", env::master_port, free_port()), fmt::format("{}=secret", env::token),
          fmt::format("{}={}", env::comm, comm)};
}

/// `tail` is the program and its arguments.
Program under_mpirun(int ranks, const Words& tail, const Words& variables) {
  Program program{{mpirun, "-np", std::to_string(ranks)}, environment()};
  if (is_openmpi) {
    program.arguments.insert(program.arguments.end(), {"--oversubscribe", "--bind-to", "none"});
  }
  program.arguments.insert(program.arguments.end(), tail.begin(), tail.end());
  program.environment.insert(program.environment.end(), variables.begin(), variables.end());
  return program;
}

struct Outcome {
  std::string output;
  int status = 0;
};

Outcome run(Program program) {
  RankProcess process(std::move(program));
  std::string output = process.read_all();
  return {std::move(output), process.wait()};
}

void run_suite(const std::string& tests) {
  skip_without_mpi();
  const Outcome suite = run(under_mpirun(4, {DSTRAIN_COMM_SUITE, tests}, meeting_point()));
  INFO(suite.output);
  CHECK(suite.status == 0);
}

}  // namespace

TEST_CASE("MpiCommunicator: conformance under mpirun", "[comm]") {
  run_suite("[mpi]");
}

TEST_CASE("HierarchicalCommunicator: conformance with MPI between nodes", "[comm]") {
  skip_without_mpi();
  const auto node = [](const char* number) {
    return Words{"/usr/bin/env",     number,         "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=2",
                 DSTRAIN_COMM_SUITE, "[shm_and_mpi]"};
  };
  Words both = node("CROSS_RANK=0");
  both.insert(both.end(), {":", "-np", "2"});
  const Words second = node("CROSS_RANK=1");
  both.insert(both.end(), second.begin(), second.end());
  const Outcome suite = run(under_mpirun(2, both, meeting_point()));
  INFO(suite.output);
  CHECK(suite.status == 0);
}

TEST_CASE("MpiCommunicator: is taken where mpirun has started the job", "[comm]") {
  skip_without_mpi();
  const Outcome job = run(under_mpirun(2, {DSTRAIN_COMM_RANK, "once"}, meeting_point("mpi")));
  CAPTURE(job.output);
  CHECK_THAT(job.output, Contains("half 1"));
  CHECK(job.status == 0);
}

TEST_CASE("MpiCommunicator: a rank that dies ends the job", "[comm]") {
  skip_without_mpi();
  const char* const mode = GENERATE("die", "die_first");
  CAPTURE(mode);
  const Outcome job = run(under_mpirun(3, {DSTRAIN_COMM_RANK, mode}, meeting_point("mpi")));
  CAPTURE(job.output);
  CHECK(job.status == (is_openmpi ? 128 + SIGKILL : SIGKILL));
}

TEST_CASE("MpiCommunicator: the status of a rank that fails is the job's", "[comm]") {
  skip_without_mpi();
  const auto [mode, says] = GENERATE(table<const char*, const char*>(
      {{"fail_first", "rank 1 never came"}, {"fail", "rank 1 has had enough"}}));
  CAPTURE(mode);
  const Outcome job = run(under_mpirun(3, {DSTRAIN_COMM_RANK, mode}, meeting_point("mpi")));
  CHECK_THAT(job.output, Contains(says));
  CHECK(job.status == status::timed_out);
}

TEST_CASE("MpiCommunicator: ranks that MPI has not started are told", "[comm]") {
  std::vector<RankProcess> ranks;
  const int port = free_port();
  for (RankPlace place : places_of({2})) {
    place.port = port;
    Words variables = environment_of(place);
    variables.emplace_back("DSTRAIN_COMM=mpi");
    ranks.emplace_back(Program{{DSTRAIN_COMM_RANK, "once"}, variables});
  }
  for (RankProcess& rank : ranks) {
    CHECK_THAT(rank.read_all(), Contains("neither mpirun nor srun --mpi has started this rank"));
    CHECK(rank.wait() == status::bad_input);
  }
}

TEST_CASE("MpiLibrary: the plug-in of another library does not help", "[comm]") {
  skip_without_mpi();
  const TempDir folder;
  const MpiKind other = is_openmpi ? MpiKind::mpich : MpiKind::openmpi;
  fs::create_symlink(plugin_folder / comm::mpi_plugin_name(other),
                     folder.path() / comm::mpi_plugin_name(other));
  Program program = under_mpirun(2, {DSTRAIN_COMM_RANK, "once"}, meeting_point("mpi"));
  program.environment[0] = "LD_LIBRARY_PATH=" + folder.path().string();
  const Outcome job = run(std::move(program));
  CHECK_THAT(job.output, Contains(std::string(name_of(kind)) + " has started this rank") &&
                             Contains(comm::mpi_plugin_name(kind)) &&
                             Contains(is_openmpi ? "libopenmpi-dev" : "libmpich-dev"));
  CHECK(job.status == status::bad_input);
}
