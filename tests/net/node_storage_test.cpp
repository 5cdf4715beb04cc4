// Nodes that keep their own ranks' files (checkpoint.use_node_local_storage).
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "runtime/checkpoint/catalog.h"
#include "tests/support/catch.h"
#include "tests/support/rank_process.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using namespace dstrain::test;
using Catch::Matchers::ContainsSubstring;

namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

struct Outcome {
  int status = 0;  ///< of rank 0
  std::string output;
  std::string losses;
};

/// Trains on two nodes that have two ranks and one, with a directory of each node's own.
Outcome train(const fs::path& folder, int max_steps, const std::vector<std::string>& more) {
  std::ofstream(folder / "config.json")
      << nlohmann::json{{"train_micro_batch_size_per_gpu", 2},
                        {"checkpoint", {{"use_node_local_storage", true}}},
                        {"zero_optimization", {{"stage", 2}}}};
  std::ofstream text(folder / "text.txt");
  for (int i = 0; i < 500; ++i) text << "the cat sat on my mat. ";
  text.close();
  const int port = free_port();
  std::vector<RankProcess> ranks;
  for (RankPlace place : places_of({2, 1})) {
    place.port = port;
    const fs::path output = folder / ("node" + std::to_string(place.node));
    std::vector<std::string> command{
        DSTRAIN_DAEMON,        "train",
        "--deepspeed",         folder / "config.json",
        "--output_dir",        output,
        "--config_name",       "gpt2",
        "--config_overrides",  "n_layer=1,n_embd=32,n_head=2,vocab_size=256,n_positions=32",
        "--block_size",        "32",
        "--train_file",        folder / "text.txt",
        "--max_steps",         std::to_string(max_steps),
        "--lr_scheduler_type", "constant",
        "--logging_steps",     "1"};
    command.insert(command.end(), more.begin(), more.end());
    ranks.emplace_back(Program{command, environment_of(place)});
  }
  Outcome result;
  for (RankProcess& rank : ranks) result.output += rank.read_all();
  result.status = ranks.front().wait();
  std::ifstream lines(folder / "node0/metrics.jsonl");
  for (std::string line; std::getline(lines, line);) {
    result.losses += nlohmann::json::parse(line).at("loss").dump() + " ";
  }
  return result;
}

fs::path shard(const fs::path& folder, int node, int rank) {
  return folder / ("node" + std::to_string(node)) / "checkpoint-3/global_step3" /
         ("zero_pp_rank_" + std::to_string(rank) + "_mp_rank_00_optim_states.safetensors");
}

}  // namespace

TEST_CASE("Nodes: each keeps the shards of its own ranks", "[net][checkpoint]") {
  const TempDir whole;
  const std::string expected = train(whole.path(), 5, {"--save_steps", "0"}).losses;
  const TempDir folder;
  const Outcome first = train(folder.path(), 3, {});
  CAPTURE(first.output);
  REQUIRE(first.status == 0);
  CHECK(fs::exists(shard(folder.path(), 0, 0)));
  CHECK(fs::exists(shard(folder.path(), 0, 1)));
  CHECK_FALSE(fs::exists(shard(folder.path(), 0, 2)));
  CHECK_FALSE(fs::exists(shard(folder.path(), 1, 0)));
  CHECK(fs::exists(shard(folder.path(), 1, 2)));
  CHECK((bytes_of(folder.path() / "node0/checkpoint-3/manifest.json") ==
         bytes_of(folder.path() / "node1/checkpoint-3/manifest.json")));

  const auto resume = [&] {
    return train(folder.path(), 5, {"--resume_from_checkpoint", "latest"});
  };
  const Outcome rest = resume();
  CAPTURE(rest.output);
  REQUIRE(rest.status == 0);
  CHECK(rest.losses == expected);
  fs::remove_all(folder.path() / "node0/checkpoint-5");
  fs::remove_all(folder.path() / "node1/checkpoint-5");
  fs::remove(shard(folder.path(), 1, 2));
  const Outcome missing = resume();
  CHECK(missing.status == 2);
  CHECK_THAT(missing.output, ContainsSubstring(shard(folder.path(), 1, 2).string()));
}
