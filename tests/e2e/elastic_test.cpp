// Elastic jobs: hosts are lost and return, and the training goes on as if nothing had happened.
#include <cmath>
#include <csignal>
#include <filesystem>

#include <unistd.h>

#include <fmt/format.h>

#include "runtime/os/file.h"
#include "tests/e2e/fake_hosts.h"
#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using test::Launch;
using Words = std::vector<std::string>;

namespace {

namespace fs = std::filesystem;

const std::string two = "addressed0 slots=1\naddressed1 slots=1\n";

/// An elastic training on fake hosts, with a runtime directory of its own.
class Job {
 public:
  explicit Job(const std::string& hosts, json config = test::ResumableRun{.stage = 2}.config())
      : hosts_(hosts) {
    write_text_file(folder_.path() / "config.json", config.dump());
  }

  [[nodiscard]] Words words(Words options, int steps, const Words& more = {}) const {
    options.insert(options.begin(), {"--log_level", "info"});
    options.insert(options.end(), {"train", "--output_dir", output().string(), "--logging_steps",
                                   "1", "--deepspeed", (folder_.path() / "config.json").string()});
    for (const std::string& word : test::ResumableRun{}.arguments(steps)) options.push_back(word);
    options.insert(options.end(), {"--save_steps", "20"});
    options.insert(options.end(), more.begin(), more.end());
    return hosts_.words(options);
  }
  [[nodiscard]] Launch::Options surroundings() const {
    return {.env = {{"XDG_RUNTIME_DIR", folder_.path().string()}, {"OMP_NUM_THREADS", "1"}},
            .directory = test::golden_folder.string()};
  }
  [[nodiscard]] test::Outcome run(Words words) const {
    return test::run_command(std::move(words), surroundings());
  }
  [[nodiscard]] const test::FakeHosts& hosts() const { return hosts_; }
  [[nodiscard]] fs::path output() const { return folder_.path() / "out"; }
  [[nodiscard]] bool has_checkpoint(int step) const {
    return fs::exists(output() / fmt::format("checkpoint-{}", step));
  }
  [[nodiscard]] json status() const {
    return json::parse(run({"status", output().string(), "--json"}).out);
  }

 private:
  test::FakeHosts hosts_;
  test::TempDir folder_;
};

/// A rank of the job's training.
pid_t some_rank(const Launch& launch) {
  for (const pid_t pid : launch.processes()) {
    std::error_code ignored;
    const auto program = fs::read_symlink(fmt::format("/proc/{}/exe", pid), ignored);
    if (program.filename() == "dstraind") return pid;
  }
  return 0;
}

/// The largest relative difference of losses; every step must be there once, in order.
double largest_difference(const std::vector<json>& a, const std::vector<json>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a[i].at("step") == b[i].at("step"));
    const double loss = b[i].at("loss");
    largest = std::max(largest, std::abs(a[i].at("loss").get<double>() - loss) / loss);
  }
  return largest;
}

}  // namespace

TEST_CASE("Elastic: a lost host changes no result and can come back", "[e2e][elastic]") {
  const int steps = 160;
  const test::TempDir folder;
  const test::ResumableRun whole{.ranks = 2, .stage = 2, .environment = {{"OMP_NUM_THREADS", "1"}}};
  const test::TrainRun undisturbed = whole.train(folder.path() / "whole", steps);
  REQUIRE(undisturbed.status == 0);

  const Job job(two);
  Launch launch(job.words({"--elastic_training"}, steps), job.surroundings());
  REQUIRE(launch.wait_until([&] { return job.has_checkpoint(20); }));
  job.hosts().crash("addressed0");  // rank 0's
  REQUIRE(launch.wait_for_error("1 rank on addressed1"));
  REQUIRE(launch.wait_until([&] { return job.has_checkpoint(60); }));
  job.hosts().set("addressed0", "down", false);
  pid_t rank = 0;
  REQUIRE(launch.wait_until([&] { return (rank = some_rank(launch)) != 0; }));
  kill(rank, SIGKILL);
  CHECK(launch.wait() == 0);
  CAPTURE(launch.err());
  CHECK_THAT(launch.err(), ContainsSubstring("the agent on addressed0 is lost") &&
                               ContainsSubstring("restart 1, from checkpoint-") &&
                               ContainsSubstring("host addressed0: ") &&
                               ContainsSubstring("No route to host; left out") &&
                               ContainsSubstring("restart 2, from checkpoint-"));
  CHECK_THAT(launch.err().substr(0, launch.err().find("restart 1")),
             !ContainsSubstring("error: rank "));
  const std::size_t back = launch.err().find("restart 2");
  CHECK(launch.err().find("2 ranks on 2 hosts", back) != std::string::npos);
  const double difference =
      largest_difference(test::read_metrics(job.output()), undisturbed.metrics);
  CAPTURE(difference);
  CHECK(difference < 1e-6);
  CHECK(launch.nothing_left());
}

TEST_CASE("Elastic: one of two hosts that cannot reach each other is left out", "[e2e][elastic]") {
  if (::geteuid() != 0) test::skip("needs root for a network of its own");
  const Job job("addressed0 slots=1\nalone1 slots=1\naddressed2 slots=1\n");
  Launch launch(job.words({"--elastic_training", "--timeout", "20"}, 30), job.surroundings());
  CHECK(launch.wait() == 0);
  CAPTURE(launch.err());
  CHECK_THAT(
      launch.err(),
      ContainsSubstring("error: host alone1 cannot reach host addressed0, although this launcher "
                        "reaches both: rank 1 could not connect to rank 0") &&
          ContainsSubstring("no route to 127.0.0.1") &&
          ContainsSubstring("host alone1: it and addressed0 cannot reach each other; left "
                            "out") &&
          ContainsSubstring("2 ranks on 2 hosts") && !ContainsSubstring("restart 2"));
  CHECK(test::read_metrics(job.output()).size() == 30);
  CHECK(launch.nothing_left());
}

TEST_CASE("Elastic: ranks that cannot share the batch idle and are named", "[e2e][elastic]") {
  const json batch{{"train_batch_size", 12}};
  const json computed{{"elasticity",
                       {{"enabled", true},
                        {"max_train_batch_size", 100},
                        {"micro_batch_sizes", {8, 10, 12}},
                        {"version", 0.1}}}};
  struct Row {
    json config;
    std::string hosts;
    Words options;
    int ranks;
    Words idle;
  };
  const auto row = GENERATE_COPY(values<Row>({
      {batch, "n0 slots=2\nn1 slots=3\n", {"--elastic_training"}, 4, {"n1 slot 2"}},
      {batch, "n0 slots=4\nn1 slots=1\n", {"--min_elastic_nodes", "2"}, 4, {"n1"}},
      {batch, two, {"--max_elastic_nodes", "1"}, 1, {"addressed1"}},
      {computed, "n0 slots=4\nn1 slots=3\n", {"--elastic_training"}, 6, {"n1 slot 2"}},
      {computed, "n0 slots=8\nn1 slots=3\n", {"--elastic_training"}, 8, {"n1"}},
  }));
  const Job job(row.hosts, row.config);
  Words options = row.options;
  options.insert(options.begin(), "--dry_run");
  const test::Outcome shown = job.run(job.words(options, 5));
  CAPTURE(shown.err);
  REQUIRE(shown.status == 0);
  const json plan = json::parse(shown.out);
  CHECK(plan.at("world_size") == row.ranks);
  CHECK(plan.at("idle") == row.idle);
}

TEST_CASE("Elastic: a spare host is named while it is one", "[e2e][elastic]") {
  const Job job(two + "addressed2 slots=1\n");
  Launch launch(job.words({"--max_elastic_nodes", "2"}, 160), job.surroundings());
  REQUIRE(launch.wait_until([&] { return job.has_checkpoint(20); }));
  CHECK(job.status().at("idle") == Words{"addressed2"});
  kill(some_rank(launch), SIGKILL);  // the same hosts come
  REQUIRE(launch.wait_for_error("restart 1, from checkpoint-"));
  REQUIRE(launch.wait_until([&] { return job.has_checkpoint(80); }));
  job.hosts().crash("addressed1");  // the spare one takes its place
  CHECK(launch.wait() == 0);
  CAPTURE(launch.err());
  const std::string told = "warning: spare, because --max_elastic_nodes is 2: addressed2\n";
  const std::size_t first = launch.err().find(told);
  REQUIRE(first < launch.err().find("restart 1"));
  CHECK_THAT(launch.err(),
             ContainsSubstring("host addressed1: ") && !ContainsSubstring("idle, because"));
  CHECK(launch.err().find("spare, because", first + told.size()) == std::string::npos);
}

TEST_CASE("Elastic: starts with the hosts that come and ends with too few", "[e2e][elastic]") {
  const Job job(two);
  job.hosts().set("addressed1", "down", true);
  const Words too_few = job.words({"--min_elastic_nodes", "2"}, 10);
  const test::Outcome refused = job.run(too_few);
  CHECK(refused.status == 3);
  CHECK_THAT(
      refused.err,
      ContainsSubstring("1 of 2 hosts are left, but --min_elastic_nodes is 2: host addressed1: ") &&
          ContainsSubstring("No route to host"));
  CHECK(refused.err.find("No route") == refused.err.rfind("No route"));  // is told once

  Launch launch(job.words({"--min_elastic_nodes", "1"}, 1'000'000), job.surroundings());
  REQUIRE(launch.wait_until([&] { return job.has_checkpoint(20); }));
  CHECK(job.status().at("absent") == Words{"addressed1"});
  job.hosts().crash("addressed0");
  CHECK(launch.wait() == 3);
  CAPTURE(launch.err());
  CHECK_THAT(launch.err(), ContainsSubstring("0 of 2 hosts are left") &&
                               ContainsSubstring("host addressed0: ") &&
                               ContainsSubstring("checkpoint-"));
  CHECK(launch.nothing_left());
}

TEST_CASE("Elastic: a job is found while it restarts", "[e2e][elastic]") {
  const Job job(two);
  Launch launch(job.words({"--elastic_training"}, 1'000'000, {"--save_steps", "0"}),
                job.surroundings());
  REQUIRE(launch.wait_for_output("step 1/"));
  const test::Outcome saved = job.run({"save", job.output().string()});
  REQUIRE(saved.status == 0);
  const std::string id = job.status().at("job");
  job.hosts().set("addressed0", "slow", true);
  job.hosts().crash("addressed1");
  json status;
  REQUIRE(launch.wait_until([&] { return (status = job.status()).at("state") == "restarting"; }));
  CHECK(status.at("job") == id);
  CHECK(status.at("restarts") == 1);
  for (const json& rank : status.at("ranks")) {
    CHECK(rank.at("state") == "starting");
    CHECK(rank.at("pid").is_null());
  }
  CHECK_THAT(job.run({"status", id}).out,
             ContainsSubstring(": train, restarting ") && !ContainsSubstring(": running") &&
                 ContainsSubstring("no step yet since the restart, last checkpoint " + saved.out));
  CHECK(status.at("last_checkpoint") == saved.out.substr(0, saved.out.size() - 1));
  const test::Outcome nothing = job.run({"save", id});
  CHECK(nothing.status == 1);
  CHECK_THAT(nothing.err,
             ContainsSubstring("is restarting: there is nothing to save newer than checkpoint-"));
  CHECK_THAT(job.run({"stop", id}).out, ContainsSubstring("ended with status 75"));
  CHECK(launch.wait() == 75);
  CHECK_THAT(launch.err(), ContainsSubstring("stopped during a restart"));
  CHECK(launch.nothing_left());
}

TEST_CASE("Elastic: what cannot be elastic is refused with the reason", "[e2e][elastic]") {
  const Job job(two);
  const auto told = [&](const Words& words) {
    const test::Outcome outcome = job.run(words);
    CHECK(outcome.status == 2);
    return outcome.err;
  };
  CHECK_THAT(told({"--elastic_training", "sh", "-c", "true"}),
             ContainsSubstring("only train can continue"));
  CHECK_THAT(told(job.words({"--min_elastic_nodes", "3"}, 5)),
             ContainsSubstring("the job has only 2 hosts"));
  CHECK_THAT(told(job.words({"--elastic_training"}, 5, {"--save_on_each_node"})),
             ContainsSubstring("takes its shards"));
  const Job without(two, json::object());
  CHECK(without.run(without.words({"--elastic_training"}, 5)).status == 2);
}
