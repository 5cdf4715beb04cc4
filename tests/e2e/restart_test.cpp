// --max_restarts: what begins again, from where, and how often.
#include <csignal>
#include <filesystem>

#include <fmt/format.h>

#include "runtime/os/file.h"
#include "tests/e2e/fake_hosts.h"
#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using test::Launch;
using Words = std::vector<std::string>;
using Catch::Matchers::ContainsSubstring;

namespace {

Words restarting(int times, const std::string& script) {
  return {"-q", "--num_gpus", "2", "--max_restarts", std::to_string(times), "sh", "-c", script};
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// A rank of the job's training.
pid_t some_rank(const Launch& launch) {
  for (const pid_t pid : launch.processes()) {
    std::error_code ignored;
    const auto program = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), ignored);
    if (program.filename() == "dstraind") return pid;
  }
  return 0;
}

/// Kills a rank once that file is there.
void kill_a_rank_once(Launch& launch, const std::filesystem::path& file) {
  REQUIRE(launch.wait_until([&] { return std::filesystem::exists(file); }));
  pid_t rank = 0;
  REQUIRE(launch.wait_until([&] { return (rank = some_rank(launch)) != 0; }));
  kill(rank, SIGKILL);
}

}  // namespace

TEST_CASE("Restarts: a restarted program knows that it was restarted", "[e2e]") {
  Launch launch(restarting(
      3, "echo time ${DSTRAIN_RESTART_COUNT-0}; test \"$DSTRAIN_RESTART_COUNT\" = 2 || exit 7"));
  CHECK(launch.wait() == 0);
  // The first to fail takes the other with it, which may not have said anything yet.
  CHECK(count(launch.out(), "time 0\n") >= 1);
  CHECK(count(launch.out(), "time 1\n") >= 1);
  CHECK(count(launch.out(), "time 2\n") == 2);
  CHECK(launch.nothing_left());
}

TEST_CASE("Restarts: end after --max_restarts", "[e2e]") {
  Launch launch(restarting(2, "echo again; exit 9"));
  CHECK(launch.wait() == 9);
  CHECK(count(launch.out(), "[rank 0]: again\n") <= 3);
  CHECK(count(launch.err(), "dstrain: error: rank") == 3);
  CHECK_THAT(launch.err(), ContainsSubstring("giving up"));
}

TEST_CASE("Restarts: a run that would end the same way is not restarted", "[e2e]") {
  const int status = GENERATE(2, 75, 0);
  Launch launch(restarting(2, fmt::format("echo once; exit {}", status)));
  CHECK(launch.wait() == status);
  CHECK(count(launch.out(), "once") <= 2);
  Launch absent({"--max_restarts", "3", "--num_gpus", "2", "no-such-program"});
  CHECK(absent.wait() == 3);
}

TEST_CASE("Restarts: a run that the user stopped is not restarted", "[e2e]") {
  Launch launch(restarting(5, "echo ready; exec sleep 1000"));
  REQUIRE(launch.wait_for_output("ready", 2));
  launch.signal(SIGINT);
  CHECK(launch.wait() == 130);
  CHECK(count(launch.out(), "ready") == 2);
}

TEST_CASE("Restarts: without progress the pauses grow and a stop ends them", "[e2e]") {
  Launch launch({"--num_gpus", "2", "--max_restarts", "100", "sh", "-c", "exit 9"});
  REQUIRE(launch.wait_for_error("restart 4 in 4 s, from where the program begins (4 of 100"));
  CHECK_THAT(launch.err(), ContainsSubstring("restart 1, from where the program begins") &&
                               ContainsSubstring("restart 2 in 1 s"));
  launch.signal(SIGTERM);
  CHECK(launch.wait() == 143);
  CHECK_THAT(launch.err(), !ContainsSubstring("restart 5"));
  CHECK(launch.nothing_left());
}

TEST_CASE("Restarts: training resumes from its newest checkpoint", "[e2e]") {
  const test::ResumableRun run{.ranks = 2, .stage = 2, .more = {"--save_steps", "20"}};
  const test::TempDir folder;
  const test::TrainRun whole = run.train(folder.path() / "whole", 300);
  REQUIRE(whole.status == 0);

  const test::FakeHosts hosts("n0 slots=1\nlocalhost slots=1\n");
  const std::filesystem::path output = folder.path() / "cut";
  write_text_file(folder.path() / "config.json", run.config().dump());
  // One restart would not do for two failures if those with a new checkpoint counted.
  Words words = hosts.words({"--max_restarts", "1", "train", "--output_dir", output.string(),
                             "--logging_steps", "1", "--deepspeed",
                             (folder.path() / "config.json").string()});
  for (const std::string& word : run.arguments(300)) words.push_back(word);
  Launch launch(words, {.env = {}, .directory = test::golden_folder.string()});
  for (const char* name : {"checkpoint-20", "checkpoint-140"}) {
    kill_a_rank_once(launch, output / name);
  }
  CHECK(launch.wait() == 0);
  CAPTURE(launch.err());
  test::TrainRun cut;
  cut.metrics = test::read_metrics(output);
  CHECK(test::results_of(cut) == test::results_of(whole));
  CHECK(launch.nothing_left());
}

TEST_CASE("Restarts: without restarts the newest checkpoint and the resume command are named",
          "[e2e]") {
  const test::TempDir folder;
  const std::filesystem::path output = folder.path() / "out";
  Launch launch(test::ResumableRun().endless(output, {"--save_steps", "20"}),
                {.env = {}, .directory = test::golden_folder.string()});
  kill_a_rank_once(launch, output / "checkpoint-20");
  CHECK(launch.wait() == 128 + SIGKILL);
  CHECK_THAT(launch.err(),
             ContainsSubstring("the newest checkpoint is " + (output / "checkpoint-").string()) &&
                 ContainsSubstring("to resume, rerun the same command with "
                                   "--resume_from_checkpoint latest\n"));
}

TEST_CASE("Restarts: --ignore_data_skip is for the checkpoint that was there before", "[e2e]") {
  test::ResumableRun run{.ranks = 1, .more = {"--save_steps", "20"}};
  const test::TempDir folder;
  REQUIRE(run.train(folder.path() / "whole", 15).status == 0);
  std::filesystem::copy(folder.path() / "whole", folder.path() / "cut",
                        std::filesystem::copy_options::recursive);
  run.more.insert(run.more.end(), {"--resume_from_checkpoint", "latest", "--ignore_data_skip"});
  const test::TrainRun whole = run.train(folder.path() / "whole", 300);
  REQUIRE(whole.status == 0);

  const std::filesystem::path output = folder.path() / "cut";
  write_text_file(folder.path() / "config.json", run.config().dump());
  Words words{"--num_gpus",
              "1",
              "--max_restarts",
              "1",
              "train",
              "--output_dir",
              output,
              "--deepspeed",
              (folder.path() / "config.json").string(),
              "--logging_steps",
              "1"};
  for (const std::string& word : run.arguments(300)) words.push_back(word);
  Launch launch(words, {.env = {}, .directory = test::golden_folder.string()});
  kill_a_rank_once(launch, output / "checkpoint-40");
  CHECK(launch.wait() == 0);
  CAPTURE(launch.err());
  test::TrainRun cut;
  cut.metrics = test::read_metrics(output);
  CHECK(test::results_of(cut) == test::results_of(whole));
}

TEST_CASE("Restarts: a new checkpoint resets the number of restarts", "[e2e]") {
  const test::TempDir folder;
  const std::filesystem::path output = folder.path() / "out";
  // The ranks of the first and the third time end before they train.
  const std::filesystem::path script = folder.path() / "script";
  write_text_file(script, "case ${DSTRAIN_RESTART_COUNT-0} in 0|2) exit 9 ;; esac\n");
  const test::ResumableRun run{.ranks = 2, .more = {"--save_steps", "20"}};
  write_text_file(folder.path() / "config.json", run.config().dump());
  Words words{"--num_gpus",
              "2",
              "--max_restarts",
              "1",
              "--venv_script",
              script.string(),
              "train",
              "--output_dir",
              output.string(),
              "--deepspeed",
              (folder.path() / "config.json").string()};
  for (const std::string& word : run.arguments(200)) words.push_back(word);
  Launch launch(words, {.env = {}, .directory = test::golden_folder.string()});
  kill_a_rank_once(launch, output / "checkpoint-20");
  CHECK(launch.wait() == 0);
  CAPTURE(launch.err());
  CHECK_THAT(launch.err(),
             ContainsSubstring("restart 1, from the start (1 of 1 without a new checkpoint)") &&
                 ContainsSubstring("restart 2, from checkpoint-") &&
                 ContainsSubstring("(0 of 1 without a new checkpoint)") &&
                 ContainsSubstring("restart 3, from checkpoint-"));
}

TEST_CASE("Restarts: without a checkpoint a restart overwrites what was written", "[e2e]") {
  const test::ResumableRun run{.ranks = 2, .stage = 2};
  const test::TempDir folder;
  const test::TrainRun whole = run.train(folder.path() / "whole", 200);
  REQUIRE(whole.status == 0);

  const test::FakeHosts hosts("n0 slots=2\n");  // the launcher's host has no part in the job
  const std::filesystem::path output = folder.path() / "cut";
  write_text_file(folder.path() / "config.json", run.config().dump());
  Words words = hosts.words({"--max_restarts", "1", "train", "--output_dir", output.string(),
                             "--logging_steps", "1", "--deepspeed",
                             (folder.path() / "config.json").string()});
  for (const std::string& word : run.arguments(200)) words.push_back(word);
  Launch launch(words, {.env = {}, .directory = test::golden_folder.string()});
  kill_a_rank_once(launch, output / "metrics.jsonl");
  CHECK(launch.wait() == 0);
  CAPTURE(launch.err());
  test::TrainRun cut;
  cut.metrics = test::read_metrics(output);
  CHECK(test::results_of(cut) == test::results_of(whole));
  CHECK(launch.nothing_left());
}

TEST_CASE("Restarts: a stop before training resumes reports the checkpoint", "[e2e]") {
  const test::TempDir folder;
  const std::filesystem::path output = folder.path() / "out";
  const std::filesystem::path script = folder.path() / "script";
  const std::filesystem::path again = folder.path() / "again";
  write_text_file(script, fmt::format("test ${{DSTRAIN_RESTART_COUNT-0}} = 0 || "
                                      "{{ touch {}; exec sleep 1000; }}\n",
                                      again.string()));
  const test::ResumableRun run{.ranks = 1, .more = {"--save_steps", "20"}};
  write_text_file(folder.path() / "config.json", run.config().dump());
  Words words{"--max_restarts", "1",           "--venv_script",
              script.string(),  "train",       "--output_dir",
              output.string(),  "--deepspeed", (folder.path() / "config.json").string()};
  for (const std::string& word : run.arguments(100'000)) words.push_back(word);
  Launch launch(words, {.env = {}, .directory = test::golden_folder.string()});
  kill_a_rank_once(launch, output / "checkpoint-20");
  REQUIRE(launch.wait_until([&] { return std::filesystem::exists(again); }));
  launch.signal(SIGTERM);
  CHECK(launch.wait() == 75);
  CHECK_THAT(launch.err(), ContainsSubstring("stopped during a restart; the last checkpoint is " +
                                             (output / "checkpoint-").string()));
  CHECK(launch.nothing_left());
}
