#include <csignal>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "runtime/comm/mpi/mpi_library.h"
#include "runtime/rank/mpi_kind.h"
#include "runtime/rank/worker_env.h"
#include "tests/net/two_nodes.h"
#include "tests/support/catch.h"
#include "tests/support/rank_process.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using namespace dstrain::test;
using Catch::Matchers::ContainsSubstring;

/// Ranks that mpirun starts, the one of the library that this program is built for.
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr MpiKind kind = MpiKind::DSTRAIN_MPI_KIND;
constexpr bool is_openmpi = kind == MpiKind::openmpi;
constexpr const char* rank_variable = is_openmpi ? "OMPI_COMM_WORLD_RANK" : "PMI_RANK";
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
          "OMP_NUM_THREADS=1"};
}

/// What says where ranks meet, when they are not to find out through MPI.
Words given_rendezvous(const char* comm = "auto") {
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
  const Outcome suite = run(under_mpirun(4, {DSTRAIN_COMM_SUITE, tests}, given_rendezvous()));
  INFO(suite.output);
  CHECK(suite.status == 0);
}

/// mpirun in one node, which starts its daemon in the other through a script in the place of ssh.
Program over_nodes(const TwoNodes& nodes, const fs::path& folder, const Words& tail) {
  const fs::path agent = folder / "agent";
  std::string enter;
  for (const std::string& word : nodes.on(1, {"sh", "-c"})) enter += word + ' ';
  std::ofstream(agent) << "#!/bin/sh\nshift\nexec " << enter << "\"$*\"\n";
  fs::permissions(agent, fs::perms::owner_all);
  const std::string& other = TwoNodes::address(1);
  Words words{mpirun, "-np", "2"};
  if (is_openmpi) {  // OpenMPI 5 does not know its own host by an address
    words.insert(words.end(), {"-H", "localhost," + other, "--bind-to", "none", "--mca",
                               "plm_rsh_agent", agent, "-x", "LD_LIBRARY_PATH"});
  } else {
    words.insert(words.end(), {"-hosts", TwoNodes::address(0) + "," + other, "-launcher", "rsh",
                               "-launcher-exec", agent});
  }
  words.insert(words.end(), tail.begin(), tail.end());
  return {nodes.on(0, words), environment()};
}

}  // namespace

TEST_CASE("MpiCommunicator: conformance under mpirun", "[comm]") {
  run_suite("[mpi]");
}

TEST_CASE("HierarchicalCommunicator: conformance with MPI between nodes", "[comm]") {
  skip_without_mpi();
  const Words two_per_node{
      "/bin/sh", "-c",
      fmt::format("CROSS_RANK=$(({} / 2)) LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 exec {} '[shm_and_mpi]'",
                  rank_variable, DSTRAIN_COMM_SUITE)};
  const Outcome suite = run(under_mpirun(4, two_per_node, given_rendezvous()));
  INFO(suite.output);
  CHECK(suite.status == 0);
}

TEST_CASE("MpiCommunicator: is used if mpirun started the job", "[comm]") {
  skip_without_mpi();
  const Outcome job = run(under_mpirun(2, {DSTRAIN_COMM_RANK, "once"}, given_rendezvous("mpi")));
  CAPTURE(job.output);
  CHECK_THAT(job.output, ContainsSubstring("half 1") && !ContainsSubstring("WARN"));
  CHECK(job.status == 0);
}

TEST_CASE("MpiCommunicator: a rank that dies ends the job", "[comm]") {
  skip_without_mpi();
  const char* const mode = GENERATE("die", "die_first");
  CAPTURE(mode);
  const Outcome job = run(under_mpirun(3, {DSTRAIN_COMM_RANK, mode}, given_rendezvous("mpi")));
  CAPTURE(job.output);
  // MPICH's mpiexec now and then trips over itself when a rank ends that early, and that of 4.2
  // says 0 instead of 9 in one of seven runs whose output is a pipe, and in few others.
  const bool early = mode == std::string_view("die_first");
  const bool lost = !is_openmpi && (early || job.status == 0);
  CHECK((lost || job.status == (is_openmpi ? 128 + SIGKILL : SIGKILL)));
}

TEST_CASE("MpiCommunicator: the status of a rank that fails is the job's", "[comm]") {
  skip_without_mpi();
  const auto [mode, says] = GENERATE(table<const char*, const char*>(
      {{"fail_first", "rank 1 never came"}, {"fail", "rank 1 has had enough"}}));
  CAPTURE(mode);
  const Outcome job = run(under_mpirun(3, {DSTRAIN_COMM_RANK, mode}, given_rendezvous("mpi")));
  CHECK_THAT(job.output, ContainsSubstring(says));
  CHECK(job.status == status::timed_out);
}

TEST_CASE("MpiLibrary: a rank that never enters MPI costs the others their timeout", "[comm]") {
  skip_without_mpi();
  // It does not end, either: mpirun might end the job itself then, now and then without a word.
  const Outcome job = run(under_mpirun(3, {DSTRAIN_COMM_RANK, "stay_out"}, {"DSTRAIN_TIMEOUT=2"}));
  CHECK_THAT(job.output,
             ContainsSubstring("rendezvous timed out after 2 s in " + std::string(name_of(kind)) +
                               ": not all of its ranks came; see that all are started"));
  CHECK(job.status == status::timed_out);
}

TEST_CASE("MpiCommunicator: ranks that MPI has not started are reported", "[comm]") {
  std::vector<RankProcess> ranks;
  const int port = free_port();
  for (RankPlace place : places_of({2})) {
    place.port = port;
    Words variables = environment_of(place);
    variables.emplace_back("DSTRAIN_COMM=mpi");
    ranks.emplace_back(Program{{DSTRAIN_COMM_RANK, "once"}, variables});
  }
  for (RankProcess& rank : ranks) {
    CHECK_THAT(rank.read_all(),
               ContainsSubstring("neither mpirun nor srun --mpi has started this rank"));
    CHECK(rank.wait() == status::bad_input);
  }
}

TEST_CASE("MpiRendezvous: ranks without a given address meet", "[comm]") {
  skip_without_mpi();
  const Outcome job = run(under_mpirun(3, {DSTRAIN_COMM_RANK, "where"}, {}));
  CAPTURE(job.output);
  CHECK(job.status == 0);
  for (int rank = 0; rank < 3; ++rank) {
    CHECK_THAT(job.output, ContainsSubstring(fmt::format("rank {} met at 127.0.0.1:", rank)));
  }
  CHECK_THAT(job.output, ContainsSubstring("a token of 32 letters"));
}

TEST_CASE("MpiRendezvous: values of the environment are kept", "[comm]") {
  skip_without_mpi();
  const int port = free_port();
  const auto [given, host, letters] = GENERATE(table<const char*, const char*, int>(
      {{"MASTER_ADDR=localhost", "localhost", 32}, {"DSTRAIN_TOKEN=four", "127.0.0.1", 4}}));
  const Outcome job = run(under_mpirun(2, {DSTRAIN_COMM_RANK, "where"},
                                       {given, fmt::format("{}={}", env::master_port, port)}));
  CAPTURE(job.output);
  CHECK(job.status == 0);
  CHECK_THAT(job.output,
             ContainsSubstring(fmt::format("rank 1 met at {}:{} with a token of {} letters", host,
                                           port, letters)));
}

TEST_CASE("MpiRendezvous: a rank that was given something else is refused", "[comm]") {
  skip_without_mpi();
  const std::string given = GENERATE("MASTER_ADDR=127.0.0.9", "MASTER_PORT=1", "DSTRAIN_TOKEN=x");
  const Words two{"/bin/sh", "-c",
                  fmt::format("[ ${} = 0 ] || export {}; exec {} where", rank_variable, given,
                              DSTRAIN_COMM_RANK)};
  const Outcome job = run(under_mpirun(2, two, {}));
  CHECK_THAT(job.output, ContainsSubstring(given.substr(0, given.find('=')) +
                                           " of this rank is not that of rank 0"));
  CHECK(job.status == status::bad_input);
}

TEST_CASE("MpiRendezvous: a rank that MPI knows by another number is refused", "[comm]") {
  skip_without_mpi();
  const Outcome job = run(under_mpirun(2, {DSTRAIN_COMM_RANK, "where"}, {"RANK=1"}));
  CHECK_THAT(job.output, ContainsSubstring("RANK=1 and ") &&
                             ContainsSubstring("_RANK=0 contradict each other"));
  CHECK(job.status == status::bad_input);
}

TEST_CASE("MpiRendezvous: an address that rank 0 cannot listen on is reported", "[comm]") {
  skip_without_mpi();
  const Outcome job =
      run(under_mpirun(2, {DSTRAIN_COMM_RANK, "where"}, {"MASTER_ADDR=192.0.2.77"}));
  CHECK_THAT(job.output, ContainsSubstring("cannot listen at 192.0.2.77") &&
                             ContainsSubstring("it is no address of this machine; MASTER_ADDR"));
  CHECK(job.status == status::could_not_launch);
}

TEST_CASE("MpiRendezvous: ranks on two hosts meet at an address that both reach", "[comm]") {
  skip_without_mpi();
  if (const auto refusal = TwoNodes::refusal()) skip(*refusal);
  const TwoNodes nodes;
  // The first address of rank 0 is one that the other node cannot reach. It belongs to an interface
  // that mpirun does not use.
  RankProcess ip(
      {nodes.on(0, {"/usr/sbin/ip", "address", "add", "10.99.9.1/32", "dev", "lo"}), {}});
  REQUIRE(ip.wait() == 0);
  const TempDir folder;
  const Outcome job = run(over_nodes(nodes, folder.path(), {DSTRAIN_COMM_RANK, "where"}));
  CAPTURE(job.output);
  CHECK(job.status == 0);
  for (int rank = 0; rank < 2; ++rank) {
    CHECK_THAT(job.output,
               ContainsSubstring(fmt::format("rank {} met at {}:", rank, TwoNodes::address(0))));
  }
}

TEST_CASE("MpiLibrary: the plug-in of another MPI library is not used", "[comm]") {
  skip_without_mpi();
  const TempDir folder;
  const MpiKind other = is_openmpi ? MpiKind::mpich : MpiKind::openmpi;
  fs::create_symlink(plugin_folder / comm::mpi_plugin_name(other),
                     folder.path() / comm::mpi_plugin_name(other));
  // A program whose library has no other plug-in beside it.
  fs::copy_file(plugin_folder / "libdstrain_core.so", folder.path() / "libdstrain_core.so");
  const fs::path rank = folder.path() / "rank";
  fs::copy_file(DSTRAIN_COMM_RANK, rank);
  Program program = under_mpirun(2, {rank, "once"}, given_rendezvous("mpi"));
  program.environment[0] = "LD_LIBRARY_PATH=" + folder.path().string();
  const Outcome job = run(std::move(program));
  CHECK_THAT(job.output, ContainsSubstring(std::string(name_of(kind)) + " has started this rank") &&
                             ContainsSubstring(comm::mpi_plugin_name(kind)) &&
                             ContainsSubstring(is_openmpi ? "libopenmpi-dev" : "libmpich-dev"));
  CHECK(job.status == status::bad_input);
}

TEST_CASE("MpiLibrary: a rank whose MPI finds no other rank is refused", "[comm]") {
  skip_without_mpi();
  Words variables = environment();
  variables.insert(variables.end(),
                   {is_openmpi ? "OMPI_COMM_WORLD_SIZE=2" : "PMI_SIZE=2",
                    is_openmpi ? "OMPI_COMM_WORLD_RANK=0" : "PMI_RANK=0", "MPI_LOCALNRANKS=2"});
  const Outcome alone = run({{DSTRAIN_COMM_RANK, "where"}, variables});
  CHECK_THAT(alone.output,
             ContainsSubstring("the starter says that it has started 2 ranks, and ") &&
                 ContainsSubstring(comm::mpi_plugin_name(kind)) && ContainsSubstring("finds 1"));
  CHECK(alone.status == status::bad_input);
}
