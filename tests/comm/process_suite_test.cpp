
#include "tests/support/catch.h"
#include "tests/support/rank_process.h"

using namespace dstrain::test;

/// Starts the suite of process_suite.cpp in one process per rank.
namespace {

void run_suite(const std::vector<int>& ranks_per_node, const std::string& tests) {
  const int port = free_port();
  std::vector<RankProcess> processes;
  for (RankPlace place : places_of(ranks_per_node)) {
    place.port = port;
    processes.emplace_back(Program{{DSTRAIN_COMM_SUITE, tests}, environment_of(place)});
  }
  for (RankProcess& process : processes) {
    INFO(process.read_all());
    CHECK(process.wait() == 0);
  }
}

}  // namespace

TEST_CASE("TcpCommunicator: conformance between processes", "[comm]") {
  run_suite({4}, "[tcp]");
}

TEST_CASE("HierarchicalCommunicator: conformance between processes", "[comm]") {
  run_suite({2, 2}, "[shm_and_tcp]");
  run_suite({1, 3}, "[shm_and_tcp]");
}
