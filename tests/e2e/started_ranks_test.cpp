// dstraind as srun and torchrun start it: a process per rank, with their variables and no launcher.
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "runtime/os/socket.h"
#include "runtime/rank/worker_env.h"
#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/rank_process.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::RankProcess;

namespace {

namespace fs = std::filesystem;
using Variables = std::map<std::string, std::string>;

const std::string rank_program = fs::path(DSTRAIN_PROGRAM).parent_path() / "dstraind";

using Words = std::vector<std::string>;

/// `dstraind COMMAND`.
RankProcess start_rank(const Words& command,
                       Variables variables,
                       const fs::path& directory = test::golden_folder) {
  Words arguments{"/usr/bin/env", "-C", directory.string(), rank_program};
  arguments.insert(arguments.end(), command.begin(), command.end());
  variables.merge(Variables{{"PATH", "/usr/bin:/bin"}, {"OMP_NUM_THREADS", "1"}});
  variables.try_emplace("DSTRAIN_TIMEOUT", "300");
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return RankProcess({arguments, environment});
}

/// `dstraind train` of tests/golden, two steps.
RankProcess start_rank(const fs::path& output, Variables variables) {
  return start_rank(test::train_command(output), std::move(variables));
}

/// As srun sets them for one of `tasks` tasks, which are `per_node` to a node.
Variables srun(int task, int tasks, int per_node) {
  return {{"SLURM_CLUSTER_NAME", "c"},
          {"SLURM_JOB_ID", std::to_string(::getpid())},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_STEP_NUM_TASKS", std::to_string(tasks)},
          {"SLURM_STEP_NODELIST", "localhost"},
          {"SLURM_STEP_TASKS_PER_NODE", fmt::format("{}(x{})", per_node, tasks / per_node)},
          {"SLURM_PROCID", std::to_string(task)},
          {"SLURM_LOCALID", std::to_string(task % per_node)},
          {"SLURM_NODEID", std::to_string(task / per_node)}};
}

Variables torchrun(int rank, int ranks, int port) {
  return {{"TORCHELASTIC_RUN_ID", "none"},
          {"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(ranks)},
          {"LOCAL_RANK", std::to_string(rank)},
          {"LOCAL_WORLD_SIZE", std::to_string(ranks)},
          {"GROUP_RANK", "0"},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(port)}};
}

/// The losses of the same job from the launcher.
std::vector<double> launched_losses() {
  const test::TempDir folder;
  std::vector<std::string> command{"--num_gpus", "2"};
  const std::vector<std::string> train = test::train_command(folder.path() / "out");
  command.insert(command.end(), train.begin(), train.end());
  const test::Outcome launched =
      test::run_command(command, {.env = {}, .directory = test::golden_folder.string()});
  CAPTURE(launched.err);
  REQUIRE(launched.status == 0);
  std::vector<double> losses;
  for (const auto& line : test::read_metrics(folder.path() / "out")) {
    losses.push_back(line.at("loss").get<double>());
  }
  return losses;
}

/// All end well, and with the launcher's losses.
void check_job(const fs::path& output, std::vector<RankProcess> ranks) {
  for (RankProcess& rank : ranks) {
    const std::string said = rank.read_all();
    CAPTURE(said);
    CHECK(rank.wait() == 0);
  }
  std::vector<double> losses;
  for (const auto& line : test::read_metrics(output)) {
    losses.push_back(line.at("loss").get<double>());
  }
  CHECK(losses == launched_losses());
}

}  // namespace

TEST_CASE("Started ranks: a rank of another version than its launcher is refused", "[e2e]") {
  const test::TempDir folder;
  RankProcess rank = start_rank(folder.path() / "out", {{"DSTRAIN_LAUNCHER_VERSION", "0.0.1"}});
  const std::string said = rank.read_all();
  CHECK(rank.wait() == 2);
  CHECK_THAT(said, ContainsSubstring("and the dstrain that started it is 0.0.1") &&
                       ContainsSubstring("--copy_binary"));
  CHECK_FALSE(fs::exists(folder.path() / "out"));
}

TEST_CASE("Started ranks: programs refuse a core of another version", "[e2e]") {
  const test::TempDir folder;
  const fs::path programs = fs::path(DSTRAIN_PROGRAM).parent_path();
  std::string core = test::read_bytes(programs / "libdstrain_core.so");
  const std::string own = std::string(DSTRAIN_VERSION) + '\0';
  REQUIRE(own.size() == 6);
  std::size_t found = 0;
  for (std::size_t at = 0; (at = core.find(own, at)) != core.npos; ++found) {
    core.replace(at, 5, "0.0.9");
  }
  REQUIRE(found > 0);
  std::ofstream(folder.path() / "libdstrain_core.so", std::ios::binary) << core;
  for (const char* program : {"dstrain", "dstraind"}) {
    fs::copy_file(programs / program, folder.path() / program);
    RankProcess process(
        {{(folder.path() / program).string(), "--version"}, {"PATH=/usr/bin:/bin"}});
    const std::string said = process.read_all();
    CHECK(process.wait() == 2);
    CHECK_THAT(said, ContainsSubstring(fmt::format(
                         "{} is version {}, and the libdstrain_core.so that it found is 0.0.9",
                         program, DSTRAIN_VERSION)));
  }
}

TEST_CASE("Started ranks: the tasks of one srun are one job", "[e2e][starters]") {
  const test::TempDir folder;
  std::vector<RankProcess> ranks;
  for (const int task : {1, 0}) {
    ranks.push_back(start_rank(folder.path() / "out", srun(task, 2, 2)));
  }
  check_job(folder.path() / "out", std::move(ranks));
}

TEST_CASE("Started ranks: those that never come are named with their nodes", "[e2e][starters]") {
  const test::TempDir folder;
  RankProcess rank =
      start_rank(folder.path() / "out", {{"RANK", "0"},
                                         {"WORLD_SIZE", "4"},
                                         {"LOCAL_RANK", "0"},
                                         {"LOCAL_WORLD_SIZE", "2"},
                                         {"CROSS_RANK", "0"},
                                         {"MASTER_ADDR", "127.0.0.1"},
                                         {"MASTER_PORT", std::to_string(test::free_port())},
                                         {"DSTRAIN_TIMEOUT", "1"}});
  CHECK_THAT(rank.read_all(),
             ContainsSubstring("waiting for rank 1 (node rank 0), ranks 2 3 (node rank 1)"));
  CHECK(rank.wait() == 4);
}

TEST_CASE("Started ranks: tasks on several nodes meet through a token file", "[e2e][starters]") {
  const test::TempDir folder;
  std::vector<RankProcess> ranks;
  for (const int task : {1, 0}) {
    Variables variables = srun(task, 2, 1);
    variables["DSTRAIN_TOKEN_DIRECTORY"] = (folder.path() / "tokens").string();
    ranks.push_back(start_rank(folder.path() / "out", std::move(variables)));
  }
  check_job(folder.path() / "out", std::move(ranks));
  CHECK(fs::is_empty(folder.path() / "tokens"));
}

TEST_CASE("Started ranks: ranks of torchrun meet at ports after that of its store",
          "[e2e][starters]") {
  const test::TempDir folder;
  const Result<UniqueFd> store = listen_tcp({"127.0.0.1", 0});
  REQUIRE(store.ok());
  std::vector<RankProcess> ranks;
  for (const int rank : {1, 0}) {
    ranks.push_back(
        start_rank(folder.path() / "out", torchrun(rank, 2, bound_port(store.value().get()))));
  }
  check_job(folder.path() / "out", std::move(ranks));
}

TEST_CASE("Started ranks: two jobs of one machine do not meet", "[e2e][starters]") {
  const test::TempDir folder;
  std::vector<RankProcess> ranks;
  for (const char* const job : {"a", "b"}) {
    for (const int task : {0, 1}) {
      Variables variables = srun(task, 2, 2);
      variables["SLURM_CLUSTER_NAME"] = job;
      ranks.push_back(start_rank(folder.path() / job, std::move(variables)));
    }
  }
  for (RankProcess& rank : ranks) {
    const std::string said = rank.read_all();
    CAPTURE(said);
    CHECK(rank.wait() == 0);
  }
  CHECK(test::read_metrics(folder.path() / "a").size() == 2);
  CHECK(test::read_metrics(folder.path() / "b").size() == 2);
}

TEST_CASE("Started ranks: a task that does not come is named", "[e2e][starters]") {
  const test::TempDir folder;
  Variables variables = srun(0, 2, 2);
  variables["DSTRAIN_TIMEOUT"] = "1";
  RankProcess rank = start_rank(folder.path() / "out", std::move(variables));
  const std::string said = rank.read_all();
  CHECK_THAT(said, ContainsSubstring("waiting for rank 1"));
  CHECK(rank.wait() == status::timed_out);
  CHECK_FALSE(fs::exists(folder.path() / "out" / "metrics.jsonl"));
}

TEST_CASE("Started ranks: ranks with different settings are refused", "[e2e][starters]") {
  const test::TempDir folder;
  const std::string output = (folder.path() / "out").string();
  const auto evaluate = [&](const std::string& block_size) {
    return Words{"train",
                 "--do_eval",
                 "--model_name_or_path",
                 "model",
                 "--validation_file",
                 "tokens.bin",
                 "--output_dir",
                 output,
                 "--block_size",
                 block_size};
  };
  const auto bench = [](const std::string& runs) {
    return Words{"bench", "comm", "--sizes", "4096", "--runs", runs};
  };
  struct Row {
    Words first;
    Words second;
    std::string difference;
  };
  const Words train = test::train_command(output);
  Words train_otherwise = train;
  train_otherwise.insert(train_otherwise.end(), {"--seed", "43"});
  const std::vector<Row> rows{
      {evaluate("32"), evaluate("16"), "rank 0 has --block_size 32, rank 1 has --block_size 16"},
      {bench("2"), bench("3"), "rank 0 has --runs 2, rank 1 has --runs 3"},
      {train, train_otherwise, "rank 0 has --seed 42, rank 1 has --seed 43"},
      {train, bench("2"), "rank 1 has bench comm"}};
  for (const Row& row : rows) {
    const int port = test::free_port();
    RankProcess first = start_rank(row.first, torchrun(0, 2, port));
    RankProcess second = start_rank(row.second, torchrun(1, 2, port));
    for (RankProcess* const rank : {&first, &second}) {
      const std::string said = rank->read_all();
      CHECK_THAT(said, ContainsSubstring(row.difference) &&
                           ContainsSubstring("all ranks of a run need the same options"));
      CHECK(rank->wait() == status::bad_input);
    }
    CHECK_FALSE(fs::exists(fs::path(output) / "model.safetensors"));
    CHECK_FALSE(fs::exists(fs::path(output) / "eval_results.json"));
  }
}

TEST_CASE("Started ranks: one path with other weights on another node is refused",
          "[e2e][starters]") {
  // Both ranks name "model", which is another directory where each of them runs.
  const test::TempDir folder;
  for (const char* const node : {"0", "1"}) {
    fs::create_directories(folder.path() / node);
    fs::copy(test::golden_folder / "model", folder.path() / node / "model");
  }
  const fs::path weights = folder.path() / "1/model/model.safetensors";
  constexpr std::uintmax_t from_end = 80 * 48 * sizeof(float);  // a row amid an embedding
  test::flip_byte(weights, fs::file_size(weights) - from_end);
  const int port = test::free_port();
  const Words command{"train",
                      "--do_eval",
                      "--block_size",
                      "32",
                      "--output_dir",
                      (folder.path() / "out").string(),
                      "--model_name_or_path",
                      "model",
                      "--validation_file",
                      (test::golden_folder / "tokens.bin").string()};
  std::vector<RankProcess> ranks;
  for (const int rank : {0, 1}) {
    ranks.push_back(
        start_rank(command, torchrun(rank, 2, port), folder.path() / std::to_string(rank)));
  }
  for (RankProcess& rank : ranks) {
    CHECK_THAT(rank.read_all(), ContainsSubstring("rank 0 has weights with the digest "));
    CHECK(rank.wait() == status::bad_input);
  }
}

TEST_CASE("Started ranks: over a network there must be a token", "[e2e][starters]") {
  const test::TempDir folder;
  Variables variables{{"RANK", "0"},
                      {"WORLD_SIZE", "2"},
                      {"LOCAL_RANK", "0"},
                      {"LOCAL_WORLD_SIZE", "1"},
                      {"MASTER_ADDR", "203.0.113.7"}};
  RankProcess rank = start_rank(folder.path() / "out", std::move(variables));
  const std::string said = rank.read_all();
  CHECK_THAT(said, ContainsSubstring("DSTRAIN_TOKEN is not set"));
  CHECK(rank.wait() == status::bad_input);
}
