#include <catch2/catch.hpp>

#include "runtime/comm/gloo/gloo_transport.h"
#include "tests/support/rank_process.h"
#include "tests/support/skip.h"

using namespace dstrain::test;

/// Starts the suite of process_suite.cpp in one process per rank.
namespace {

void run_suite(const std::vector<int>& ranks_per_node, const std::string& tests) {
  if (!dstrain::comm::has_gloo()) skip("this build has no gloo (libgloo-dev)");
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

TEST_CASE("GlooCommunicator: conformance between processes", "[comm]") {
  run_suite({4}, "[gloo]");
}

TEST_CASE("HierarchicalCommunicator: conformance between processes", "[comm]") {
  run_suite({2, 2}, "[shm_and_gloo]");
  run_suite({1, 3}, "[shm_and_gloo]");
}
