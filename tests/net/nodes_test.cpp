#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/net/two_nodes.h"
#include "tests/support/catch.h"
#include "tests/support/rank_process.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using namespace dstrain::test;
using Catch::Matchers::ContainsSubstring;

/// Ranks on two nodes that share nothing but a network.
namespace {

void skip_when_impossible() {
  if (const auto reason = TwoNodes::refusal()) skip(*reason);
}

/// One process per rank; on one node when there are no two.
std::vector<RankProcess> start(const TwoNodes* nodes,
                               const std::vector<int>& ranks_per_node,
                               const std::vector<std::string>& command) {
  const int port = free_port();  // of this namespace; in a new one every port is free
  std::vector<RankProcess> processes;
  for (RankPlace place : places_of(ranks_per_node)) {
    place.port = port;
    if (nodes != nullptr) place.address = TwoNodes::address(0);
    processes.emplace_back(Program{nodes != nullptr ? nodes->on(place.node, command) : command,
                                   environment_of(place)});
  }
  return processes;
}

void finish(std::vector<RankProcess>& processes) {
  for (RankProcess& process : processes) {
    INFO(process.read_all());
    REQUIRE(process.wait() == 0);
  }
}

/// Trains a tiny model for a few steps; the loss and the gradient norm of each, as written.
std::vector<std::string> train(const TwoNodes* nodes,
                               const std::vector<int>& ranks_per_node,
                               int stage) {
  const TempDir folder;
  const std::filesystem::path text = folder.path() / "text.txt";
  const std::filesystem::path config = folder.path() / "config.json";
  const std::filesystem::path output = folder.path() / "out";
  std::ofstream file(text);
  for (int i = 0; i < 500; ++i) file << "the cat sat on my mat. ";
  file.close();
  std::ofstream(config) << nlohmann::json{
      {"train_micro_batch_size_per_gpu", 2},
      {"gradient_clipping", 1.0},
      {"zero_optimization", {{"stage", stage}, {"stage3_param_persistence_threshold", 100}}}};
  auto processes =
      start(nodes, ranks_per_node,
            {DSTRAIN_DAEMON,       "train",
             "--deepspeed",        config,
             "--output_dir",       output,
             "--config_name",      "gpt2",
             "--config_overrides", "n_layer=2,n_embd=32,n_head=2,vocab_size=256,n_positions=32",
             "--block_size",       "32",
             "--train_file",       text,
             "--max_steps",        "4",
             "--learning_rate",    "0.005",
             "--logging_steps",    "1",
             "--save_steps",       "0"});
  finish(processes);
  std::vector<std::string> steps;
  std::ifstream lines(output / "metrics.jsonl");
  for (std::string line; std::getline(lines, line);) {
    const auto step = nlohmann::json::parse(line);
    steps.push_back(step.at("loss").dump() + " " + step.at("grad_norm").dump());
  }
  return steps;
}

}  // namespace

TEST_CASE("Nodes: the conformance suite over TCP", "[net]") {
  skip_when_impossible();
  const TwoNodes nodes;
  auto processes = start(&nodes, {2, 2}, {DSTRAIN_COMM_SUITE, "[tcp]"});
  finish(processes);
}

TEST_CASE("Nodes: the conformance suite with shared memory in nodes", "[net]") {
  skip_when_impossible();
  const TwoNodes nodes;
  auto processes = start(&nodes, {1, 3}, {DSTRAIN_COMM_SUITE, "[shm_and_tcp]"});
  finish(processes);
}

TEST_CASE("Nodes: training gives the bits of one node", "[net]") {
  skip_when_impossible();
  const int stage = GENERATE(2, 3);
  const auto ranks_per_node = GENERATE(values<std::vector<int>>({{1, 1}, {2, 2}, {2, 1}}));
  CAPTURE(stage, ranks_per_node);
  const TwoNodes nodes;
  const auto apart = train(&nodes, ranks_per_node, stage);
  const auto together = train(nullptr, {ranks_per_node[0] + ranks_per_node[1]}, stage);
  REQUIRE(apart.size() == 4);
  CHECK(apart == together);
}

TEST_CASE("Nodes: a rank that dies on one is named on the other", "[net]") {
  skip_when_impossible();
  const TwoNodes nodes;
  auto ranks = start(&nodes, {2, 1}, {DSTRAIN_COMM_RANK, "forever"});
  for (RankProcess& rank : ranks) REQUIRE(rank.read_line() == "running");
  ranks[2].kill();
  for (const std::size_t rank : {0U, 1U}) {
    CHECK_THAT(ranks[rank].read_line(), ContainsSubstring("rank 2 is gone"));
  }
}

TEST_CASE("Nodes: shared memory between nodes is refused", "[net]") {
  skip_when_impossible();
  const TwoNodes nodes;
  std::vector<RankProcess> ranks;
  const int port = free_port();
  for (RankPlace place : places_of({2})) {  // says one node, and is on two
    place.port = port;
    place.address = TwoNodes::address(0);
    ranks.emplace_back(
        Program{nodes.on(place.rank, {DSTRAIN_COMM_RANK, "once"}), environment_of(place)});
  }
  CHECK_THAT(ranks[1].read_all(), ContainsSubstring("the two are not on one machine"));
}
