#include <algorithm>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/e2e/train_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using nlohmann::json;

namespace {

using Words = std::vector<std::string>;
using test::Outcome;
using test::run_command;

const Words model{"--config_name",
                  "gpt2",
                  "--config_overrides",
                  "n_layer=3,n_embd=128,n_head=2,vocab_size=256,n_positions=64",
                  "--block_size",
                  "64",
                  "--per_device_train_batch_size",
                  "2"};

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Outcome plan(const std::string& device, const std::string& host, const Words& more) {
  return run_command(joined({"plan", "--device_memory", device, "--host_memory", host}, more));
}

std::string write_text(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "text.txt";
  std::ofstream file(path);
  for (int i = 0; i < 200; ++i) file << "the cat sat on my mat. ";
  return path.string();
}

/// Host memory that is locked and that is not: whether a run may lock it depends on its user.
std::int64_t host_bytes(const json& tiers) {
  return tiers.at("host").get<std::int64_t>() + tiers.at("pinned").get<std::int64_t>();
}

}  // namespace

TEST_CASE("plan: every row is accepted and its prediction holds", "[e2e][plan]") {
  const test::TempDir folder;
  const std::string text = write_text(folder.path());
  const bool bf16 = GENERATE(false, true);
  const Words precision = bf16 ? Words{"--bf16"} : Words{};
  const Outcome planned =
      plan("1GiB", "1GiB", joined(joined(model, precision), {"--num_gpus", "2", "--json"}));
  REQUIRE(planned.status == 0);
  const json rows = json::parse(planned.out);
  CHECK(rows.size() == 18);
  CHECK(rows.front().at("relative_step_time") == 1.0);
  int number = 0;
  for (const json& row : rows) {
    CAPTURE(row.dump());
    Words arguments =
        joined(model, {"--train_file", text, "--max_steps", "2", "--save_steps", "1"});
    for (const json& option : row.at("training_options")) arguments.push_back(option);
    const test::TrainRun trained = test::run_train(
        2, row.at("ds_config"), folder.path() / std::to_string(number++), arguments);
    CAPTURE(trained.err);
    REQUIRE(trained.status == 0);
    const json& tracked = trained.metrics.back().at("memory");
    CHECK(tracked.at("device") == row.at("total").at("device"));
    const std::int64_t host = host_bytes(row.at("total"));
    CHECK(host_bytes(tracked) <= host);
    CHECK(host_bytes(tracked) >= host / 10 * 9);  // ranks differ by the pieces they save
  }
}

TEST_CASE("plan: the configuration that is printed can be pasted", "[e2e][plan]") {
  const test::TempDir folder;
  const Outcome planned = plan("8MiB", "64MiB", joined(model, {"--num_gpus", "2"}));
  CAPTURE(planned.err);
  REQUIRE(planned.status == 0);
  const std::string file = (folder.path() / "ds.json").string();
  std::ofstream(file) << planned.out.substr(planned.out.find("\n{"));
  CHECK(run_command({"config", "check", file, "--num_gpus", "2"}).out == file + ": ok\n");
}

TEST_CASE("plan: less device memory brings offload and the lean stage 3 last", "[e2e][plan]") {
  const auto first = [](const std::string& device) {
    const Outcome planned = plan(device, "8GiB",
                                 {"--config_name", "gpt2", "--num_gpus", "4", "--json",
                                  "--per_device_train_batch_size", "1", "--block_size", "64"});
    REQUIRE(planned.status == 0);
    const json row = json::parse(planned.out).front();
    CHECK(row.at("relative_step_time") == 1.0);
    return row;
  };
  const auto offloaded = [](const json& row) {
    return row.at("offload_optimizer") != "none" || row.at("offload_param") != "none";
  };
  CHECK(!offloaded(first("4GiB")));
  CHECK(offloaded(first("700MiB")));
  const json least = first("400MiB");
  CHECK(least.at("offload_param") == "cpu");
  CHECK(least.at("ds_config").at("zero_optimization").at("overlap_comm") == false);
}

TEST_CASE("plan: when nothing fits it says by how much", "[e2e][plan]") {
  const Outcome planned = plan("1MiB", "1MiB", joined(model, {"--json"}));
  CHECK(planned.status == 1);
  CHECK(planned.out.empty());
  CHECK(planned.err.find("nothing fits") != std::string::npos);
  CHECK(planned.err.find("of device memory per rank and") != std::string::npos);
  CHECK(planned.err.find("\"stage\"") != std::string::npos);
}

TEST_CASE("plan: a typed --gradient_checkpointing is respected", "[e2e][plan]") {
  const std::string typed = GENERATE("true", "false");
  const Outcome planned =
      plan("1GiB", "1GiB", joined(model, {"--json", "--gradient_checkpointing", typed}));
  REQUIRE(planned.status == 0);
  for (const json& row : json::parse(planned.out)) {
    CHECK(row.at("gradient_checkpointing") == (typed == "true"));
  }
}

TEST_CASE("plan: plans for an absent device", "[e2e][plan]") {
  const test::TempDir folder;
  const test::Launch::Options nothing_here{
      .env = {{"DSTRAIN_GPU_DIRECTORY", folder.path().string()},
              {"DSTRAIN_PLUGIN_PATH", folder.path().string()}},
      .directory = {}};
  const Words budget = joined({"plan", "--device_memory", "1GiB", "--host_memory", "1GiB"},
                              joined(model, {"--json"}));
  const auto planned = [&](const Words& command) {
    const Outcome outcome = run_command(command, nothing_here);
    CAPTURE(outcome.err);
    REQUIRE(outcome.status == 0);
    return json::parse(outcome.out);
  };
  const json cpu = planned(budget);
  const json cuda = planned(joined(budget, {"--device", "cuda"}));
  CHECK(planned(joined({"--device", "cuda"}, budget)) == cuda);
  CHECK(planned(joined({"--device=cuda"}, budget)) == cuda);
  CHECK(planned(joined(budget, {"--device", "auto"})) == cpu);
  CHECK(planned(joined({"--device", "cpu"}, budget)) == cpu);
  REQUIRE(cuda.size() == cpu.size());
  double before = 0;
  for (const json& row : cuda) {
    CHECK(row.at("device") == "cuda");
    CHECK_THAT(row.at("outside_plan").get<std::string>(),
               Catch::Matchers::ContainsSubstring("the CUDA context"));
    CHECK_FALSE(row.contains("relative_step_time"));
    CHECK(row.at("moved_bytes") >= before);
    before = row.at("moved_bytes").get<double>();
    const auto same = [&](const json& other) {
      return other.at("ds_config") == row.at("ds_config") &&
             other.at("training_options") == row.at("training_options");
    };
    const auto other = std::find_if(cpu.begin(), cpu.end(), same);
    REQUIRE(other != cpu.end());
    CHECK(other->at("device") == "cpu");
    CHECK(row.at("memory").at("device").at("activations") !=
          other->at("memory").at("device").at("activations"));
    CHECK(host_bytes(row.at("total")) >= host_bytes(other->at("total")) + (16 << 20));
  }
  // One rank and no offload: nothing moves, and what is computed once comes first.
  CHECK(cuda.front().at("moved_bytes") == 0);
  CHECK(cuda.front().at("gradient_checkpointing") == false);
}

TEST_CASE("plan: auto plans for this machine's device without opening it", "[e2e][plan]") {
  const test::TempDir folder;
  std::ofstream(folder.path() / "nvidia0") << "";
  std::ofstream(folder.path() / "libdstrain_cuda.so") << "no library";
  const auto run = [&](const Words& more) {
    return run_command(
               joined(joined({"plan", "--device_memory", "1GiB", "--host_memory", "1GiB"}, model),
                      more),
               {.env = {{"DSTRAIN_GPU_DIRECTORY", folder.path().string()},
                        {"DSTRAIN_PLUGIN_PATH", folder.path().string()}},
                .directory = {}})
        .out;
  };
  CHECK_THAT(run({}),
             Catch::Matchers::ContainsSubstring("Planned for cuda. moved: ") &&
                 Catch::Matchers::ContainsSubstring("need not be the fastest") &&
                 Catch::Matchers::ContainsSubstring("Libraries take more: the CUDA context"));
  CHECK_THAT(run({"--device", "cpu"}),
             Catch::Matchers::ContainsSubstring("Planned for cpu. time: ") &&
                 Catch::Matchers::ContainsSubstring("Libraries take more: oneDNN"));
}

TEST_CASE("plan: usage errors end with status 2", "[e2e][plan]") {
  struct Row {
    Words arguments;
    std::string named;
  };
  const Words budget{"plan", "--device_memory", "1GiB", "--host_memory", "1GiB"};
  const std::vector<Row> rows{
      {{"plan", "--device_memory", "1GiB"}, "--host_memory"},
      {{"plan", "--device_memory", "much", "--host_memory", "1GiB"}, "--device_memory"},
      {joined(budget, {"--nvme", "1X"}), "--nvme"},
      {budget, "no model"},
      {joined(budget, {"--config_nam", "gpt2"}), "did you mean --config_name?"},
      {joined(budget, {"--config_name", "gpt2", "--num_gpus", "0"}), "--num_gpus"},
      {joined(budget, {"--config_name", "gpt2", "--block_size", "4096"}), "4096"},
      {joined(budget, {"--config_name", "gpt2", "--deepspeed", "ds.json"}), "--deepspeed"},
      {joined(budget, {"--config_name", "gpt2", "--device", "gpu"}), "--device=gpu: use auto"},
      {joined({"--device", "gpu"}, joined(budget, model)), "--device"},
      {joined({"--num_gpus", "2"}, joined(budget, model)), "launch options but --device"}};
  for (const Row& row : rows) {
    CAPTURE(row.arguments);
    const Outcome planned = run_command(row.arguments);
    CHECK(planned.status == 2);
    CHECK(planned.err.find(row.named) != std::string::npos);
  }
}

TEST_CASE("Plan: an inference row fits exactly into what it says", "[e2e][plan]") {
  const Words texts{"--inference",
                    "--config_name",
                    "gpt2",
                    "--config_overrides",
                    "n_layer=3,n_embd=128,n_head=2,vocab_size=256,n_positions=2048",
                    "--json"};
  const Outcome all = plan("1GiB", "1GiB", texts);
  CAPTURE(all.err);
  REQUIRE(all.status == 0);
  const json rows = json::parse(all.out);
  REQUIRE(rows.size() == 4);  // contexts of 1024 and 2048 on the device and on the host
  CHECK(rows[0].at("batch_size") == 256);
  CHECK(rows[1].at("context") == 2048);
  CHECK(rows[2].at("ds_config").at("zero_optimization").at("stage") == 3);
  // 2 tensors of 3 layers of 128 features, fp32, for each position of each text.
  CHECK(rows[1].at("cache") == 2 * 3 * 128 * 4 * 2048 * rows[1].at("batch_size").get<int>());
  const auto bytes = rows[1].at("total").at("device").get<std::int64_t>();
  const auto largest = [&](std::int64_t budget) {
    const json again = json::parse(plan(std::to_string(budget), "1GiB", texts).out);
    const auto row = std::ranges::find_if(again, [](const json& each) {
      return each.at("stage") == 0 && each.at("context") == 2048;
    });
    return row->at("batch_size").get<int>();
  };
  CHECK(largest(bytes) == rows[1].at("batch_size"));
  CHECK(largest(bytes - 1) == rows[1].at("batch_size").get<int>() / 2);
  const Outcome none = plan("1MiB", "1GiB", texts);
  CHECK(none.status == 1);
  CHECK_THAT(none.err, Catch::Matchers::ContainsSubstring("no text fits on cpu"));
}
