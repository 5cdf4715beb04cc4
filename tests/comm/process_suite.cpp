#include <numeric>

#include "tests/comm/conformance.h"
#include "tests/comm/process_groups.h"
#include "tests/support/catch.h"

/// The conformance suite where each rank is a process: every process of a job runs this program
/// with the same arguments.
namespace dstrain::test {
namespace {

void check_all(const GroupMaker& groups) {
  REQUIRE(process_count() >= 4);
  std::vector<int> worlds(static_cast<std::size_t>(process_count()));
  std::iota(worlds.begin(), worlds.end(), 1);
  check_results(groups, worlds);
  check_long_sums(groups, {2, 3});
  check_sequences(groups, {process_count()});
  check_split(groups, worlds);
  check_messages(groups);
  check_failures(groups);
}

}  // namespace

TEST_CASE("processes over TCP", "[tcp]") {
  check_all(process_groups(Over::tcp));
}

TEST_CASE("processes over MPI", "[mpi]") {
  check_all(process_groups(Over::mpi));
}

TEST_CASE("processes over MPI in pieces", "[mpi]") {
  check_results(process_groups(Over::mpi_in_small_pieces), {2});
}

TEST_CASE("processes with shared memory in nodes and TCP between", "[shm_and_tcp]") {
  check_all(process_groups(Over::shm_and_tcp));
}

TEST_CASE("processes with shared memory in nodes and MPI between", "[shm_and_mpi]") {
  check_all(process_groups(Over::shm_and_mpi));
}

}  // namespace dstrain::test
