#include "launcher/job/job_events.h"

#include <csignal>

#include <sys/socket.h>

#include <nlohmann/json.hpp>

#include "runtime/rank/rank_control.h"
#include "tests/launcher/made_up_hosts.h"
#include "tests/launcher/runtime_directory.h"
#include "tests/launcher/seen_ranks.h"
#include "tests/support/catch.h"

using namespace dstrain;
using namespace dstrain::launcher;

namespace {

/// All parties of a job whose two hosts have two ranks each; nothing is printed.
struct Parties {
  test::RuntimeDirectory directory;
  test::MadeUpHosts hosts{0, 2};
  SteadyClock clock;
  Console console{4, "info", LogMux::Prefixes::all};
  Supervisor supervisor{hosts.job.supervision};
  JobStatus status;
  JobServer server;
  LaunchReport report{hosts.job, hosts.agents, console};
  HangWatch hangs{{hosts.agents, supervisor, status, server, console, clock}, 30};
  JobEvents events{{hosts.agents, supervisor, status, server, console, report, hangs, clock}};

  Parties() : status(initial_status(with_output(hosts.job), 0)), server(status) {}

  void started(HostAgent& agent, int rank, pid_t pid) {
    WireWriter out;
    out.i32(rank);
    out.i32(pid);
    take(agent, FromAgent::started, out.take());
  }
  void take(HostAgent& agent, FromAgent type, std::string payload = "") {
    events.take(agent, {static_cast<std::uint8_t>(type), std::move(payload)});
  }
  /// What is wanted of the job now.
  JobServer::Requests serve() {
    JobServer::Requests all;
    for (int times = 0; times < 3; ++times) {
      std::vector<pollfd> fds;
      server.add_polls(fds);
      poll(fds.data(), fds.size(), 0);
      const JobServer::Requests some = server.serve(fds, 0);
      if (some.save_request != 0) all.save_request = some.save_request;
    }
    return all;
  }

 private:
  static const LaunchJob& with_output(LaunchJob& job) {
    job.id = "events";
    job.output_directory = "/out";
    return job;
  }
};

}  // namespace

TEST_CASE("JobEvents: a host that is lost before its ranks started is status 3",
          "[launcher][job]") {
  Parties early;
  early.events.host_lost(early.hosts.second(), "gone");
  CHECK(early.supervisor.exit_status() == 3);
  Parties late;
  late.started(late.hosts.second(), 2, 1'000'000);
  late.events.host_lost(late.hosts.second(), "gone");
  CHECK(late.supervisor.lost_a_host());
  CHECK(late.supervisor.exit_status() == 1);
}

TEST_CASE("JobEvents: ranks of a lost host are lost unless they ended before", "[launcher][job]") {
  Parties parties;
  HostAgent& second = parties.hosts.second();
  parties.started(parties.hosts.first(), 0, 1'000'000);
  parties.started(second, 2, 1'000'002);
  parties.started(second, 3, 1'000'003);
  parties.take(second, FromAgent::exited, encode_exit({3, 7 << 8}));
  parties.events.host_lost(second, "gone");
  const auto status = nlohmann::json::parse(status_json(parties.status, 1));
  std::vector<std::string> states;
  for (const auto& rank : status.at("ranks")) states.push_back(rank.at("state"));
  CHECK(states == std::vector<std::string>{"running", "starting", "lost", "ended"});
}

TEST_CASE("JobEvents: hosts lost after a failed rank are not the cause", "[launcher][job]") {
  Parties parties;
  parties.supervisor = Supervisor({.ranks = 4, .failure_ends_agents = true});
  parties.started(parties.hosts.first(), 0, 1'000'000);
  parties.take(parties.hosts.first(), FromAgent::exited, encode_exit({0, 7 << 8}));
  parties.events.host_lost(parties.hosts.second(), "gone");
  CHECK(parties.supervisor.exit_status() == 7);
  CHECK_FALSE(parties.report.has_cause());
}

TEST_CASE("JobEvents: messages about another agent's ranks are refused", "[launcher][job]") {
  Parties parties;
  HostAgent& second = parties.hosts.second();
  CHECK_THROWS_AS(parties.started(second, 1, 7), Error);
  CHECK_THROWS_AS(parties.take(second, FromAgent::exited, encode_exit({1, 0})), Error);
  CHECK_THROWS_AS(
      parties.take(second, FromAgent::output, encode_output({1, OutputStream::out, "x"})), Error);
  CHECK_THROWS_AS(parties.take(second, FromAgent::rank_message, encode_rank_message({1, "x"})),
                  Error);
  CHECK_THROWS_AS(parties.take(second, FromAgent::hello), Error);
  CHECK(second.owed_acks == 0);
  parties.take(second, FromAgent::output, encode_output({2, OutputStream::out, "12345"}));
  CHECK(second.owed_acks == 5);
}

TEST_CASE("JobEvents: decides whether a dead agent's rank ended by itself", "[launcher][job]") {
  struct Row {
    int wait_status;
    bool own;
  };
  const auto row = GENERATE(values<Row>({{7 << 8, true},
                                         {SIGSEGV, true},
                                         {SIGKILL, false},
                                         {SIGPIPE, false},
                                         {(128 + SIGKILL) << 8, false},
                                         {(128 + SIGPIPE) << 8, false}}));
  CAPTURE(row.wait_status);
  Parties parties;
  parties.started(parties.hosts.first(), 1, 1'000'001);
  parties.started(parties.hosts.second(), 2, 1'000'002);
  // Processes of another machine have numbers that mean nothing here.
  parties.events.child_ended(1'000'002, row.wait_status);
  CHECK_FALSE(parties.supervisor.first_failure());
  parties.hosts.job.hosts[0].remote = false;
  parties.events.child_ended(999'999, row.wait_status);
  CHECK_FALSE(parties.supervisor.first_failure());
  parties.events.child_ended(1'000'001, row.wait_status);
  CHECK(parties.supervisor.first_failure().has_value() == row.own);
}

TEST_CASE("JobEvents: a job that is being ended is not reported as moving again",
          "[launcher][job]") {
  const bool ends = GENERATE(false, true);
  Parties parties;
  HostAgent& first = parties.hosts.first();
  parties.started(first, 0, 1'000'000);
  parties.started(first, 1, 1'000'001);
  test::SeenRank rank{.state = 'T'};
  const auto look = [&](double seconds) {
    parties.take(first, FromAgent::look,
                 encode_look({.seconds = seconds, .ranks = {rank.look(0), rank.look(1)}}));
  };
  look(0);
  look(40);
  const std::size_t said = parties.console.pending_bytes();
  CHECK(said > 0);  // that it hangs
  if (ends) parties.supervisor.stop_requested(SIGTERM, 0);
  ++rank.changes;
  look(1);
  CHECK((parties.console.pending_bytes() == said) == ends);
}

TEST_CASE("JobEvents: the first rank answers for checkpoints", "[launcher][job]") {
  Parties parties;
  const UniqueFd client = JobDirectory::make().connect("events", Deadline::after(60));
  REQUIRE(send(client.get(), "save\n", 5, MSG_NOSIGNAL) == 5);
  REQUIRE(parties.serve().save_request == 1);
  const std::string saved =
      encode_save_answer({.request = 1, .step = 3, .checkpoint = "/out/3", .failure = ""});
  char byte = 0;
  parties.take(parties.hosts.first(), FromAgent::rank_message, encode_rank_message({1, saved}));
  CHECK(recv(client.get(), &byte, 1, MSG_DONTWAIT) < 0);
  parties.take(parties.hosts.first(), FromAgent::rank_message, encode_rank_message({0, saved}));
  CHECK(recv(client.get(), &byte, 1, MSG_DONTWAIT) == 1);
}
