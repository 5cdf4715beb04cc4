#include "launcher/job/supervisor.h"

#include <csignal>

#include "launcher/job/launch_report.h"
#include "tests/support/catch.h"

using namespace dstrain::launcher;

namespace {

int exited(int status) {
  return status << 8;
}
Exit end_of(int rank, int wait_status) {
  return {rank, wait_status, KillCause::none};
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

TEST_CASE("Supervisor: the first Ctrl-C asks and the second hurries and the third kills",
          "[launcher]") {
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

TEST_CASE("Supervisor: a save that makes progress is not killed", "[launcher]") {
  Supervisor supervisor({1, 1, 30});
  supervisor.save_moved(0);
  CHECK_FALSE(supervisor.deadline());
  CHECK(supervisor.stop_requested(SIGTERM, 1) == Order::terminate);
  supervisor.save_moved(25);
  CHECK(supervisor.deadline() == 55.0);
  CHECK(supervisor.tick(54) == Order::none);
  SECTION("and one that stands still is, which is told") {
    CHECK(supervisor.tick(55) == Order::kill);
    supervisor.note_killed_save();
    supervisor.rank_exited(end_of(0, SIGKILL), 55.1);
    CHECK(supervisor.killed_a_save());
    CHECK(supervisor.exit_status() == 74);
  }
  SECTION("unless somebody hurries") {
    CHECK(supervisor.stop_requested(SIGINT, 54) == Order::terminate);
    supervisor.save_moved(54.5);
    CHECK(supervisor.tick(55) == Order::kill);
    supervisor.note_killed_save();
    supervisor.rank_exited(end_of(0, SIGKILL), 55.1);
    CHECK(supervisor.exit_status() == 143);
  }
}

TEST_CASE("Supervisor: after a crash no save gets time", "[launcher]") {
  Supervisor supervisor({2, 1, 30});
  CHECK(supervisor.rank_exited(end_of(1, exited(7)), 10) == Order::terminate);
  supervisor.save_moved(10.5);
  CHECK(supervisor.deadline() == 11.0);
}

TEST_CASE("Supervisor: an agent that does not answer is abandoned", "[launcher]") {
  Supervisor supervisor({1, 1, 2});
  supervisor.stop_requested(SIGTERM, 0);
  CHECK(supervisor.tick(2) == Order::kill);
  REQUIRE(supervisor.deadline());
  CHECK(supervisor.tick(*supervisor.deadline()) == Order::abandon);
  CHECK_FALSE(supervisor.deadline());
  CHECK(supervisor.exit_status() == 143);
}

TEST_CASE("Supervisor: the status is 75 if the ranks saved", "[launcher]") {
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

  Supervisor too_late({2, 1, 30});
  too_late.stop_requested(SIGINT, 0);
  for (const int rank : {0, 1}) too_late.rank_exited(end_of(rank, 0), 1);
  CHECK(too_late.exit_status() == 0);

  // Someone else asked the ranks: the others get the time to save.
  for (const int wait_status : {exited(75), exited(128 + SIGINT), exited(128 + SIGTERM),
                                exited(128 + SIGUSR1), SIGINT, SIGTERM, SIGUSR1}) {
    CAPTURE(wait_status);
    Supervisor by_itself({2, 1, 30});
    CHECK(by_itself.rank_exited(end_of(0, wait_status), 1) == Order::terminate);
    CHECK(by_itself.deadline() == 31.0);
    by_itself.rank_exited(end_of(1, wait_status), 2);
    CHECK(by_itself.exit_status() == shell_status(wait_status));
  }
}

TEST_CASE("Supervisor: a rank that was killed is the cause of its host's stop", "[launcher]") {
  Supervisor by_mpirun({3, 1, 30});
  CHECK(by_mpirun.host_asked_to_stop(SIGTERM, 0) == Order::terminate);
  by_mpirun.rank_exited(end_of(0, exited(1)), 1);
  by_mpirun.rank_exited(end_of(2, SIGKILL), 1);
  by_mpirun.rank_exited(end_of(1, exited(1)), 1);
  CHECK(by_mpirun.exit_status() == 137);
  CHECK_FALSE(by_mpirun.asked_to_stop());
  CHECK(by_mpirun.first_failure()->rank == 2);

  Supervisor by_signals({2, 1, 30});
  by_signals.host_asked_to_stop(SIGHUP, 0);
  for (const int rank : {0, 1}) by_signals.rank_exited(end_of(rank, SIGHUP), 1);
  CHECK(by_signals.exit_status() == 128 + SIGHUP);
  CHECK(by_signals.asked_to_stop());
  CHECK_FALSE(by_signals.first_failure());

  Supervisor by_slurm({2, 1, 40});  // which asks first, and kills later
  by_slurm.host_asked_to_stop(SIGTERM, 0);
  for (const int rank : {0, 1}) by_slurm.rank_exited(end_of(rank, SIGKILL), 30);
  CHECK(by_slurm.asked_to_stop());

  Supervisor by_us({1, 1, 30});
  by_us.host_asked_to_stop(SIGTERM, 0);
  CHECK(by_us.tick(31) == Order::kill);
  by_us.rank_exited(end_of(0, SIGKILL), 32);
  CHECK(by_us.exit_status() == 128 + SIGTERM);
}

TEST_CASE("Supervisor: one request that many processes get does not hurry", "[launcher]") {
  Supervisor host_first({2, 1, 30});
  CHECK(host_first.host_asked_to_stop(SIGHUP, 0) == Order::terminate);
  CHECK(host_first.host_asked_to_stop(SIGHUP, 1) == Order::none);
  CHECK(host_first.only_a_host_asked());
  CHECK(host_first.stop_requested(SIGHUP, 1) == Order::none);
  CHECK(host_first.deadline() == 30.0);
  CHECK(host_first.stop_requested(SIGINT, 2) == Order::terminate);
  CHECK(host_first.deadline() == 3.0);
  CHECK(host_first.asked_to_stop());
  CHECK_FALSE(host_first.only_a_host_asked());
  for (const int rank : {0, 1}) host_first.rank_exited(end_of(rank, exited(75)), 2);
  CHECK(host_first.exit_status() == 75);

  Supervisor rank_first({2, 1, 30});
  rank_first.rank_exited(end_of(0, exited(75)), 0);
  CHECK(rank_first.stop_requested(SIGTERM, 1) == Order::none);
  CHECK(rank_first.deadline() == 30.0);
  CHECK(rank_first.stop_requested(SIGTERM, 2) == Order::terminate);

  Supervisor launcher_first({2, 1, 30});
  launcher_first.stop_requested(SIGTERM, 0);
  CHECK(launcher_first.host_asked_to_stop(SIGTERM, 1) == Order::none);
  CHECK(launcher_first.deadline() == 30.0);
  for (const int rank : {0, 1}) launcher_first.rank_exited(end_of(rank, SIGTERM), 2);
  CHECK(launcher_first.exit_status() == 143);

  Supervisor failing({2, 20, 30});
  failing.rank_exited(end_of(0, exited(7)), 0);
  CHECK(failing.stop_requested(SIGINT, 1) == Order::terminate);
  CHECK(failing.deadline() == 2.0);
}

TEST_CASE("Supervisor: hurrying never lengthens a wait", "[launcher]") {
  Supervisor asked({1, 1, 0.5});
  asked.stop_requested(SIGINT, 0);
  CHECK(asked.stop_requested(SIGINT, 0.2) == Order::terminate);
  CHECK(asked.deadline() == 0.5);

  Supervisor killing({1, 1, 30});
  for (const double now : {0.0, 1.0, 2.0}) killing.stop_requested(SIGINT, now);
  const double given_up = killing.deadline().value();
  CHECK(given_up > 3);
  CHECK(killing.stop_requested(SIGINT, given_up - 0.1) == Order::none);
  CHECK(killing.deadline() == given_up);
  CHECK(killing.stop_requested(SIGINT, 2) == Order::none);
  CHECK(killing.deadline() == 3.0);
}

TEST_CASE("Supervisor: the first signal is the one that counts", "[launcher]") {
  Supervisor twice({1, 1, 30});
  twice.stop_requested(SIGINT, 0);
  twice.stop_requested(SIGTERM, 1);
  twice.rank_exited(end_of(0, SIGTERM), 2);
  CHECK(twice.exit_status() == 130);

  Supervisor after_the_end({1, 1, 30});
  after_the_end.rank_exited(end_of(0, 0), 0);
  after_the_end.stop_requested(SIGINT, 1);
  CHECK(after_the_end.exit_status() == 0);

  Supervisor after_a_loss({2, 1, 30});
  after_a_loss.host_lost(1, 1, 0);
  after_a_loss.stop_requested(SIGINT, 0.5);
  after_a_loss.rank_exited(end_of(0, SIGTERM), 1);
  CHECK(after_a_loss.exit_status() == 1);
}

TEST_CASE("Supervisor: each rank ends once", "[launcher]") {
  Supervisor told_twice({2, 1, 30});
  told_twice.rank_exited(end_of(0, 0), 0);
  CHECK(told_twice.rank_exited(end_of(0, exited(7)), 1) == Order::none);
  CHECK_FALSE(told_twice.all_ended());
  CHECK_FALSE(told_twice.first_failure());

  Supervisor ended_and_lost({3, 1, 30});
  ended_and_lost.rank_exited(end_of(2, 0), 0);
  ended_and_lost.host_lost(1, 2, 1);
  CHECK_FALSE(ended_and_lost.all_ended());
  ended_and_lost.rank_exited(end_of(0, SIGTERM), 2);
  CHECK(ended_and_lost.all_ended());
}

TEST_CASE("Supervisor: a lost host stops the others", "[launcher]") {
  Supervisor supervisor({4, 1, 30});
  CHECK(supervisor.host_lost(2, 2, 5) == Order::terminate);
  CHECK(supervisor.deadline() == 6.0);
  CHECK(supervisor.lost_a_host());
  CHECK(supervisor.rank_exited(end_of(0, SIGTERM), 5.5) == Order::none);
  CHECK(supervisor.rank_exited(end_of(1, 0), 5.5) == Order::none);
  CHECK(supervisor.all_ended());
  CHECK(supervisor.exit_status() == 1);

  Supervisor before_the_ranks({2, 1, 30});
  before_the_ranks.launch_failed(0);
  CHECK(before_the_ranks.host_lost(0, 1, 0) == Order::none);
  CHECK(before_the_ranks.exit_status() == 3);

  Supervisor asked_to_stop({2, 1, 30});
  asked_to_stop.stop_requested(SIGINT, 0);
  asked_to_stop.host_lost(0, 2, 1);
  CHECK(asked_to_stop.exit_status() == 130);
}

TEST_CASE("Supervisor: a failure caused by a peer is not the cause", "[launcher]") {
  // Rank 0 saw its peer go and ended with 1 before the peer's end was told.
  Supervisor killed({2, 1, 30});
  killed.rank_exited(end_of(0, exited(1)), 0);
  killed.rank_exited(end_of(1, SIGSEGV), 0.1);
  CHECK(killed.first_failure()->rank == 1);
  CHECK(killed.exit_status() == 139);

  Supervisor lost({2, 1, 30});
  lost.rank_exited(end_of(0, exited(1)), 0);
  lost.host_lost(1, 1, 0.1);
  CHECK_FALSE(lost.first_failure());
  CHECK(lost.lost_a_host());
  CHECK(lost.exit_status() == 1);

  // A host that fell silent is found lost long after it was to be killed.
  Supervisor silent({2, 1, 30});
  silent.rank_exited(end_of(0, exited(1)), 0);
  CHECK(silent.tick(1) == Order::kill);
  silent.host_lost(1, 1, 30);
  CHECK_FALSE(silent.first_failure());
  CHECK(silent.lost_a_host());

  // mpirun ends the others' agents when one rank has failed.
  Supervisor under_mpirun({.ranks = 2, .failure_ends_agents = true});
  under_mpirun.rank_exited(end_of(0, exited(1)), 0);
  under_mpirun.host_lost(1, 1, 0.1);
  CHECK(under_mpirun.first_failure()->rank == 0);
  CHECK_FALSE(under_mpirun.lost_a_host());

  // The SIGTERM of a stopped peer is ours.
  Supervisor stopped({2, 1, 30});
  stopped.rank_exited(end_of(0, exited(1)), 0);
  stopped.rank_exited(end_of(1, SIGTERM), 0.1);
  CHECK(stopped.first_failure()->rank == 0);
  CHECK(stopped.exit_status() == 1);

  // Any other status is a rank's own, and signals after SIGKILL for all are ours.
  Supervisor own({2, 1, 30});
  own.rank_exited(end_of(0, exited(9)), 0);
  own.host_lost(1, 1, 0.1);
  CHECK(own.exit_status() == 9);
  Supervisor late({2, 1, 30});
  late.rank_exited(end_of(0, exited(1)), 0);
  CHECK(late.tick(1) == Order::kill);
  late.rank_exited(end_of(1, SIGKILL), 1.1);
  CHECK(late.first_failure()->rank == 0);
}

TEST_CASE("Supervisor: a rank that waits in vain for a lost host is not the cause", "[launcher]") {
  Supervisor supervisor({.ranks = 2, .kill_grace_seconds = 31});
  CHECK(supervisor.rank_exited(end_of(0, exited(4)), 0) == Order::terminate);
  CHECK(supervisor.failed_by_itself());
  supervisor.host_lost(1, 1, 20);
  CHECK_FALSE(supervisor.first_failure());
  CHECK(supervisor.lost_a_host());
  CHECK(supervisor.exit_status() == 1);
}

TEST_CASE("Supervisor: killed hosts are abandoned after a grace", "[launcher]") {
  Supervisor supervisor({.ranks = 2, .kill_grace_seconds = 31});
  supervisor.rank_exited(end_of(0, exited(1)), 0);
  CHECK(supervisor.tick(1) == Order::kill);
  CHECK(supervisor.tick(31.9) == Order::none);
  CHECK(supervisor.tick(32) == Order::abandon);
}

TEST_CASE("Supervisor: ranks that end with what started them have not failed", "[launcher]") {
  Supervisor supervisor({.ranks = 2, .failure_ends_agents = true});
  CHECK(supervisor.starter_killed(0) == Order::terminate);
  supervisor.rank_exited(end_of(0, SIGKILL), 0.1);
  supervisor.rank_exited(end_of(1, SIGTERM), 0.1);
  CHECK_FALSE(supervisor.first_failure());
  CHECK(supervisor.exit_status() == 1);
}

TEST_CASE("Supervisor: a rank that a stop signal ended has not failed when its host got it too",
          "[launcher]") {
  Supervisor supervisor({2, 1, 30});
  CHECK(supervisor.rank_exited(end_of(0, SIGTERM), 0) == Order::terminate);
  supervisor.host_asked_to_stop(SIGTERM, 0.1);
  CHECK_FALSE(supervisor.first_failure());
  CHECK(supervisor.only_a_host_asked());
  supervisor.rank_exited(end_of(1, SIGTERM), 0.2);
  CHECK(supervisor.exit_status() == 128 + SIGTERM);

  Supervisor crashed({2, 1, 30});
  crashed.rank_exited(end_of(0, exited(7)), 0);
  crashed.host_asked_to_stop(SIGTERM, 0.1);
  CHECK(crashed.first_failure()->rank == 0);
  CHECK_FALSE(crashed.asked_to_stop());  // srun ends the others when an agent fails
}

TEST_CASE("Supervisor: a launcher may have some of the ranks", "[launcher]") {
  Supervisor supervisor({2, 1, 30, 4});
  supervisor.rank_exited(end_of(4, 0), 0);
  CHECK_FALSE(supervisor.all_ended());
  supervisor.rank_exited(end_of(5, exited(3)), 0);
  CHECK(supervisor.exit_status() == 3);
}

TEST_CASE("Supervisor: a crash before Ctrl-C keeps its status", "[launcher]") {
  Supervisor supervisor({2, 1, 30});
  supervisor.rank_exited(end_of(0, exited(9)), 0);
  CHECK(supervisor.stop_requested(SIGINT, 0.5) == Order::terminate);
  CHECK(supervisor.stop_requested(SIGINT, 0.6) == Order::terminate);
  CHECK(supervisor.stop_requested(SIGINT, 0.7) == Order::kill);
  CHECK(supervisor.exit_status() == 9);
}

TEST_CASE("Supervisor: a program that could not start gives status 3", "[launcher]") {
  Supervisor supervisor({2, 1, 30});
  CHECK(supervisor.launch_failed(0) == Order::terminate);
  supervisor.rank_exited(end_of(0, SIGTERM), 0);
  CHECK(supervisor.exit_status() == 3);

  // Whatever the ranks that did start say.
  Supervisor failed_first({2, 1, 30});
  failed_first.rank_exited(end_of(0, exited(7)), 0);
  failed_first.launch_failed(0.1);
  CHECK(failed_first.exit_status() == 3);
}

TEST_CASE("FailureReport: names rank and host and pid and cause", "[launcher]") {
  const std::vector<std::string> lines{"one", "two"};
  CHECK(failure_report({{1, exited(7), KillCause::none}, "box", 42, 7, lines, "/l/x.log"}) ==
        "dstrain: error: rank 1 on box (pid 42) ended with status 7\n"
        "  last step: 7\n"
        "  last lines of rank 1:\n    one\n    two\n  log file: /l/x.log\n");
  CHECK(failure_report({{0, SIGKILL, KillCause::maybe_memory}, "box", 42, 0, {}, ""}) ==
        "dstrain: error: rank 0 on box (pid 42) was killed by SIGKILL; possibly out of memory\n");
  CHECK(describe_end({0, SIGKILL, KillCause::memory}) ==
        "was killed by SIGKILL by the kernel's OOM killer: out of memory");
  CHECK(describe_end({0, SIGXCPU, KillCause::cpu_time}) ==
        "was killed by SIGXCPU: it has used all the CPU time that ulimit -t allows; raise that "
        "limit");
}
