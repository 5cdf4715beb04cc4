#include "launcher/supervisor.h"

#include <csignal>

#include <catch2/catch.hpp>

#include "launcher/failure_report.h"

using namespace dstrain::launcher;

namespace {

int exited(int status) {
  return status << 8;
}
Exit end_of(int rank, int wait_status) {
  return {rank, wait_status, OomVerdict::none};
}

}  // namespace

TEST_CASE("Supervisor: all ranks done is success", "[launcher]") {
  Supervisor supervisor({2, 1, 30});
  CHECK(supervisor.rank_exited(end_of(0, 0), 0) == Order::none);
  CHECK(supervisor.rank_exited(end_of(1, 0), 0) == Order::none);
  CHECK(supervisor.all_ended());
  CHECK(supervisor.exit_status() == 0);
}

TEST_CASE("Supervisor: the first failure decides and the others are stopped", "[launcher]") {
  Supervisor supervisor({3, 1, 30});
  CHECK(supervisor.rank_exited(end_of(1, exited(7)), 10) == Order::terminate);
  CHECK(supervisor.deadline() == 11.0);
  CHECK(supervisor.rank_exited(end_of(0, SIGTERM), 10.2) == Order::none);
  CHECK(supervisor.tick(10.9) == Order::none);
  CHECK(supervisor.tick(11) == Order::kill);
  CHECK(supervisor.rank_exited(end_of(2, SIGKILL), 11.1) == Order::none);
  CHECK(supervisor.exit_status() == 7);
  CHECK(supervisor.first_failure()->rank == 1);
}

TEST_CASE("Supervisor: a signal is 128 and its number", "[launcher]") {
  Supervisor supervisor({1, 1, 30});
  supervisor.rank_exited(end_of(0, SIGSEGV), 0);
  CHECK(supervisor.exit_status() == 139);
}

TEST_CASE("Supervisor: Ctrl-C once asks and twice hurries and thrice kills", "[launcher]") {
  Supervisor supervisor({2, 1, 30});
  CHECK(supervisor.stop_requested(SIGINT, 0) == Order::terminate);
  CHECK(supervisor.deadline() == 30.0);
  CHECK(supervisor.stop_requested(SIGINT, 5) == Order::terminate);
  CHECK(supervisor.deadline() == 6.0);
  CHECK(supervisor.stop_requested(SIGINT, 5.1) == Order::kill);
  supervisor.rank_exited(end_of(0, SIGKILL), 5.2);
  supervisor.rank_exited(end_of(1, SIGKILL), 5.2);
  CHECK(supervisor.exit_status() == 130);
  CHECK_FALSE(supervisor.first_failure());
}

TEST_CASE("Supervisor: an agent that does not answer is given up", "[launcher]") {
  Supervisor supervisor({1, 1, 2});
  supervisor.stop_requested(SIGTERM, 0);
  CHECK(supervisor.tick(2) == Order::kill);
  REQUIRE(supervisor.deadline());
  CHECK(supervisor.tick(*supervisor.deadline()) == Order::abandon);
  CHECK_FALSE(supervisor.deadline());
  CHECK(supervisor.exit_status() == 143);
}

TEST_CASE("Supervisor: ranks that saved make status 75", "[launcher]") {
  Supervisor asked({2, 1, 30});
  asked.stop_requested(SIGINT, 0);
  asked.rank_exited(end_of(0, exited(75)), 1);
  asked.rank_exited(end_of(1, exited(75)), 1);
  CHECK(asked.exit_status() == 75);

  Supervisor one_did_not({2, 1, 30});
  one_did_not.stop_requested(SIGINT, 0);
  one_did_not.rank_exited(end_of(0, exited(75)), 1);
  one_did_not.rank_exited(end_of(1, 0), 1);
  CHECK(one_did_not.exit_status() == 130);

  // Someone else asked the ranks: the others get the time to save.
  for (const int status : {75, 130, 143}) {
    Supervisor by_itself({2, 1, 30});
    CHECK(by_itself.rank_exited(end_of(0, exited(status)), 1) == Order::terminate);
    CHECK(by_itself.deadline() == 31.0);
    by_itself.rank_exited(end_of(1, exited(status)), 2);
    CHECK(by_itself.exit_status() == status);
  }
}

TEST_CASE("Supervisor: a failure outlives the agent", "[launcher]") {
  Supervisor supervisor({2, 1, 30});
  supervisor.rank_exited(end_of(0, exited(9)), 0);
  supervisor.agent_lost(SIGKILL);
  CHECK(supervisor.exit_status() == 9);

  Supervisor nothing_known({2, 1, 30});
  nothing_known.agent_lost(SIGKILL);
  CHECK(nothing_known.exit_status() == 137);
  Supervisor odd({2, 1, 30});
  odd.agent_lost(0);
  CHECK(odd.exit_status() == 1);
}

TEST_CASE("Supervisor: a crash before Ctrl-C keeps its status", "[launcher]") {
  Supervisor supervisor({2, 1, 30});
  supervisor.rank_exited(end_of(0, exited(9)), 0);
  CHECK(supervisor.stop_requested(SIGINT, 0.5) == Order::terminate);
  CHECK(supervisor.stop_requested(SIGINT, 0.6) == Order::terminate);
  CHECK(supervisor.stop_requested(SIGINT, 0.7) == Order::kill);
  CHECK(supervisor.exit_status() == 9);
}

TEST_CASE("Supervisor: what could not start is status 3", "[launcher]") {
  Supervisor supervisor({2, 1, 30});
  CHECK(supervisor.launch_failed(0) == Order::terminate);
  supervisor.rank_exited(end_of(0, SIGTERM), 0);
  CHECK(supervisor.exit_status() == 3);
}

TEST_CASE("FailureReport: names rank and host and pid and cause", "[launcher]") {
  const std::vector<std::string> lines{"one", "two"};
  CHECK(failure_report({{1, exited(7), OomVerdict::none}, "box", 42, lines, "/l/x.log"}) ==
        "dstrain: error: rank 1 on box (pid 42) ended with status 7\n"
        "  last lines of rank 1:\n    one\n    two\n  log file: /l/x.log\n");
  CHECK(failure_report({{0, SIGKILL, OomVerdict::possible}, "box", 42, {}, ""}) ==
        "dstrain: error: rank 0 on box (pid 42) was killed by SIGKILL; possibly out of memory\n");
  CHECK(describe_end({0, SIGKILL, OomVerdict::certain}) ==
        "was killed by SIGKILL by the kernel's OOM killer: out of memory");
}
