#include "launcher/job/hang_watch.h"

#include <sys/socket.h>

#include <nlohmann/json.hpp>

#include "tests/launcher/made_up_hosts.h"
#include "tests/launcher/runtime_directory.h"
#include "tests/launcher/seen_ranks.h"
#include "tests/support/catch.h"

using namespace dstrain;
using namespace dstrain::launcher;
using Catch::Matchers::ContainsSubstring;

namespace {

class SetClock final : public Clock {
 public:
  [[nodiscard]] double now_seconds() const override { return seconds; }
  double seconds = 100;
};

/// The watch of a training on two hosts with two ranks each, and a client that waits for stacks or
/// a checkpoint.
class Job {
 public:
  Job() {
    for (HostTask& task : hosts_.job.hosts) task.spec.look_milliseconds = 1000;
    for (HostAgent* const agent : {&first(), &second()}) {
      agent->state = HostAgent::State::working;
      for (int rank = agent->first_rank(); rank < agent->first_rank() + agent->ranks(); ++rank) {
        agent->pids[rank] = status_.ranks.at(rank).pid = 1'000 + rank;
      }
    }
  }
  [[nodiscard]] HostAgent& first() const { return hosts_.first(); }
  [[nodiscard]] HostAgent& second() const { return hosts_.second(); }
  HangWatch& watch() { return watch_; }

  void look(HostAgent& agent) {
    watch_.heard(agent);
    AgentLook look;
    for (int rank = agent.first_rank(); rank < agent.first_rank() + agent.ranks(); ++rank) {
      look.ranks.push_back(test::SeenRank().look(rank));
    }
    watch_.take_look(agent, look);
  }
  void ask_for_stacks() {
    ask("stacks\n");
    watch_.ask_for_stacks();
  }
  void ask_for_save() {
    ask("save\n");
    watch_.save_requested();
  }
  void checkpoint_is_whole() { server_.answer_save({1, 5, "checkpoint-5", ""}); }
  [[nodiscard]] double now() const { return clock_.seconds; }
  void pass(double seconds) {
    clock_.seconds += seconds;
    watch_.tick();
  }
  /// What the client has got; null: nothing yet.
  nlohmann::json answer() {
    std::string text(1U << 16, '\0');
    const ssize_t got = recv(client_.get(), text.data(), text.size(), MSG_DONTWAIT);
    if (got <= 0) return nullptr;
    return nlohmann::json::parse(text.substr(0, static_cast<std::size_t>(got)));
  }

 private:
  static const LaunchJob& named(LaunchJob& job) {
    job.id = "hangs";
    job.output_directory = "/out";
    return job;
  }
  void ask(std::string_view request) {
    send(client_.get(), request.data(), request.size(), MSG_NOSIGNAL);
    for (bool asked = false; !asked;) {
      std::vector<pollfd> fds;
      server_.add_polls(fds);
      poll(fds.data(), fds.size(), -1);
      const JobServer::Requests requests = server_.serve(fds, 0);
      asked = requests.stacks || requests.save_request != 0;
    }
  }

  test::RuntimeDirectory directory_;
  test::MadeUpHosts hosts_{0, 2};
  SetClock clock_;
  Console console_{4, "info", LogMux::Prefixes::all};
  Supervisor supervisor_{hosts_.job.supervision};
  JobStatus status_{initial_status(named(hosts_.job), 0)};
  JobServer server_{status_};
  HangWatch watch_{{hosts_.agents, supervisor_, status_, server_, console_, clock_}, 30};
  UniqueFd client_ = JobDirectory::make().connect("hangs", Deadline::after(60));
};

}  // namespace

TEST_CASE("HangWatch: a silent agent is named and not waited for", "[launcher]") {
  Job job;
  job.look(job.first());
  job.look(job.second());
  job.pass(3);
  job.look(job.first());
  job.ask_for_stacks();
  job.watch().take_stacks(job.first(), {1,
                                        "\x1e"
                                        "0\n  main\n"});
  CHECK(job.watch().deadline() == 104.0);
  job.pass(0.75);
  CHECK(job.answer().is_null());
  job.pass(0.25);
  const nlohmann::json answer = job.answer();
  REQUIRE(answer.is_object());
  CHECK(answer.at("text") == "stacks of rank 0:\n  main\n  the agent on h1 has not answered\n");
  CHECK(answer.at("where").back() ==
        "host h1 (ranks 2 3) has sent nothing for 4 s: its agent may be stopped");
  CHECK_THAT(answer.at("where").dump(), !ContainsSubstring("from host h0"));
}

TEST_CASE("HangWatch: a responsive agent gets time to collect stacks", "[launcher]") {
  Job job;
  job.look(job.first());
  job.ask_for_stacks();
  job.watch().take_stacks(job.second(), {1, ""});
  for (int second = 0; second < 11; ++second) {
    job.look(job.first());
    job.pass(1);
    CHECK(job.answer().is_null());
  }
  job.look(job.first());
  job.pass(1);
  const nlohmann::json answer = job.answer();
  REQUIRE(answer.is_object());
  CHECK(answer.at("text") == "  the agent on h0 has not answered\n");
  CHECK_THAT(answer.at("where").dump(), !ContainsSubstring("has sent nothing"));
}

TEST_CASE("HangWatch: a checkpoint is not waited for when the first agent is silent",
          "[launcher]") {
  Job job;
  job.watch().ranks_started();
  SECTION("since it was given its ranks") {
    job.ask_for_save();
  }
  SECTION("before one was asked for") {
    job.pass(3.5);
    job.ask_for_save();
    job.look(job.second());
    job.pass(0.5);
    CHECK(job.answer().is_null());
  }
  REQUIRE(job.watch().deadline().has_value());
  job.pass(*job.watch().deadline() - job.now());
  CHECK_THAT(job.answer().dump(),
             ContainsSubstring("host h0 (ranks 0 1) has sent nothing ") &&
                 ContainsSubstring("the checkpoint is saved once it continues"));
  CHECK_FALSE(job.watch().deadline().has_value());
}

TEST_CASE("HangWatch: a checkpoint is waited for while the first agent responds", "[launcher]") {
  Job job;
  job.watch().ranks_started();
  job.ask_for_save();
  for (int second = 0; second < 20; ++second) {  // the other one is silent
    job.look(job.first());
    job.pass(1);
    CHECK(job.answer().is_null());
  }
  job.checkpoint_is_whole();
  CHECK(job.answer().at("checkpoint") == "checkpoint-5");
  job.pass(60);
  CHECK_FALSE(job.watch().deadline().has_value());
}

TEST_CASE("HangWatch: a lost host is not waited for", "[launcher]") {
  Job job;
  job.ask_for_stacks();
  job.watch().take_stacks(job.first(), {1,
                                        "\x1e"
                                        "1\n  main\n"});
  job.watch().host_lost(job.second());
  job.pass(0);
  CHECK(job.answer().is_object());
}
