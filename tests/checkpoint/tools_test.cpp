#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/checkpoint/checkpoint_files.h"
#include "tests/e2e/launch_process.h"
#include "tests/support/catch.h"
#include "tests/support/newer_checkpoint.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

namespace fs = std::filesystem;

Outcome checkpoint_tool(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "checkpoint");
  return run_command(std::move(arguments));
}

/// Steps 1, 2 and 3, of which 2 has a changed byte.
void save_three(const fs::path& output) {
  for (const std::int64_t step : {1, 2, 3}) {
    SavedModel model = random_model(0, 2, {10, 20});
    model.step = step;
    const fs::path directory = save(output, model);
    if (step == 2) std::ofstream(directory / "config.json", std::ios::in) << "[";
  }
}

}  // namespace

TEST_CASE("Checkpoint tools: list looks at names and verify at bytes", "[e2e]") {
  const TempDir output;
  save_three(output.path());
  const std::string directory = output.path().string();
  const Outcome list = checkpoint_tool({"list", directory, "--json"});
  CHECK(list.status == 0);
  const auto listed = nlohmann::json::parse(list.out);
  REQUIRE(listed.size() == 3);
  CHECK(listed[0]["step"] == 3);
  CHECK(listed[0]["world_size"] == 2);
  CHECK(listed[1]["state"] == "complete");

  const Outcome verified = checkpoint_tool({"verify", "--json", directory});
  CHECK(verified.status == 2);
  const auto rows = nlohmann::json::parse(verified.out);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0]["state"] == "whole");
  CHECK(rows[0]["problems"].empty());
  CHECK(rows[1]["state"] == "damaged");
  CHECK_THAT(rows[1]["problems"][0].get<std::string>(),
             Catch::Matchers::ContainsSubstring(
                 "config.json: damaged at byte 0 (chunk of 3 bytes): checksum "));

  CHECK(checkpoint_tool({"verify", directory + "/checkpoint-3/"}).status == 0);
  fs::remove(output.path() / "checkpoint-3" / "latest");
  const Outcome table = checkpoint_tool({"list", directory});
  CHECK(table.status == 2);
  CHECK_THAT(table.out, Catch::Matchers::ContainsSubstring("damaged: " + directory +
                                                           "/checkpoint-3/latest: missing"));
}

TEST_CASE("Checkpoint tools: damage and foreign files are reported differently", "[e2e]") {
  const TempDir output;
  save_three(output.path());
  const std::string directory = output.path().string();
  std::ofstream(output.path() / "checkpoint-3" / "pytorch_model.bin") << "foreign";
  fs::create_directory(output.path() / "checkpoint-2" / "model");

  const Outcome verified = checkpoint_tool({"verify", directory, "--json"});
  CHECK(verified.status == 2);
  const auto rows = nlohmann::json::parse(verified.out);
  CHECK(rows[0]["state"] == "foreign files");
  CHECK(rows[0]["foreign_files"] == nlohmann::json::array({"pytorch_model.bin"}));
  CHECK(rows[0]["problems"][0] ==
        directory + "/checkpoint-3/pytorch_model.bin: not in the manifest");
  CHECK(rows[1]["state"] == "damaged");
  CHECK(rows[1]["foreign_files"] == nlohmann::json::array({"model/"}));
  CHECK(rows[2]["state"] == "whole");

  const Outcome one = checkpoint_tool({"verify", directory + "/checkpoint-3"});
  CHECK(one.status == 2);
  CHECK_THAT(one.out,
             Catch::Matchers::ContainsSubstring("whole, with foreign files: pytorch_model.bin\n") &&
                 Catch::Matchers::ContainsSubstring(
                     "checkpoint-3/pytorch_model.bin: not in the manifest"));
  const Outcome list = checkpoint_tool({"list", directory});
  CHECK(list.status == 0);
  CHECK_THAT(
      list.out,
      Catch::Matchers::ContainsSubstring("complete, with foreign files: pytorch_model.bin\n") &&
          Catch::Matchers::ContainsSubstring("complete, with foreign files: model/\n"));

  CHECK(checkpoint_tool({"prune", directory, "--keep", "1"}).status == 0);
  CHECK(fs::exists(output.path() / "checkpoint-3"));
  CHECK_FALSE(fs::exists(output.path() / "checkpoint-1"));
}

TEST_CASE("Checkpoint tools: prune keeps intact checkpoints", "[e2e]") {
  const TempDir output;
  save_three(output.path());
  const std::string directory = output.path().string();
  const Outcome outcome = checkpoint_tool({"prune", directory, "--keep", "2", "--json"});
  CHECK(outcome.status == 0);
  CHECK(nlohmann::json::parse(outcome.out)["removed"] ==
        nlohmann::json::array({directory + "/checkpoint-2"}));
  CHECK(checkpoint_tool({"verify", directory}).status == 0);
  CHECK_THAT(checkpoint_tool({"prune", directory, "--keep=2"}).out,
             Catch::Matchers::StartsWith("nothing removed"));
}

TEST_CASE("Checkpoint tools: a newer format is reported and left alone", "[e2e]") {
  const TempDir output;
  save_three(output.path());
  make_newer(output.path() / "checkpoint-3");
  const std::string directory = output.path().string();
  const std::string written = "dstrain 7.3.0 wrote it in version 2 of the format";
  for (const char* const action : {"list", "verify"}) {
    const Outcome outcome = checkpoint_tool({action, directory});
    CHECK(outcome.status == 2);
    CHECK_THAT(outcome.out, Catch::Matchers::ContainsSubstring("newer format: ") &&
                                Catch::Matchers::ContainsSubstring(written));
  }
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"prune", directory, "--keep", "1"},
        std::vector<std::string>{"export", directory, directory + "/model"},
        std::vector<std::string>{"export", directory + "/checkpoint-3", directory + "/model"}}) {
    const Outcome outcome = checkpoint_tool(arguments);
    CHECK(outcome.status == 2);
    CHECK_THAT(outcome.err, Catch::Matchers::ContainsSubstring(written));
  }
  for (const int step : {1, 2, 3}) {
    CHECK(fs::exists(output.path() / fmt::format("checkpoint-{}", step)));
  }
  CHECK_FALSE(fs::exists(output.path() / "model"));
}

TEST_CASE("Checkpoint tools: a checkpoint of another program is not called damaged", "[e2e]") {
  const TempDir output;
  const fs::path directory = output.path() / "checkpoint-7";
  fs::create_directories(directory);
  std::ofstream(directory / "trainer_state.json") << R"({"global_step": 7, "log_history": []})";
  for (const std::string action : {"list", "verify"}) {
    const Outcome outcome = checkpoint_tool({action, output.path().string()});
    CHECK(outcome.status == 2);
    CHECK_THAT(outcome.out, Catch::Matchers::ContainsSubstring("another program's checkpoint"));
    CHECK_THAT(outcome.out, !Catch::Matchers::ContainsSubstring("damaged"));
  }
  const auto rows =
      nlohmann::json::parse(checkpoint_tool({"list", output.path().string(), "--json"}).out);
  CHECK(rows[0]["state"] == "another program's");
  // One of ours that has lost its manifest is damaged.
  std::ofstream(directory / "trainer_state.json") << R"({"version": 1, "global_step": 7})";
  CHECK_THAT(checkpoint_tool({"list", output.path().string()}).out,
             Catch::Matchers::ContainsSubstring("damaged: "));
}

TEST_CASE("Checkpoint tools: what cannot be done is said", "[e2e]") {
  const TempDir output;
  const std::string directory = output.path().string();
  struct Row {
    std::vector<std::string> arguments;
    const char* message;
  };
  const std::vector<Row> rows{
      {{"list", directory}, "contains no checkpoint"},
      {{"verify", directory + "/missing"}, "no such directory"},
      {{"verify", directory + "/checkpoint-1"}, "no such directory"},
      {{"prune", directory}, "--keep N is missing"},
      {{"prune", directory, "--keep", "0"}, "expected a number"},
      {{"prune", directory, "--keep"}, "expected a number"},
      {{"list", directory, "--keep", "1"}, "--keep is an option of checkpoint prune"},
      {{"list"}, "DIR is missing"},
      {{"list", directory, directory}, "does not belong here"},
      {{"verfy", directory}, "did you mean verify?"},
      {{}, "no such action"}};
  for (const Row& row : rows) {
    const Outcome outcome = checkpoint_tool(row.arguments);
    CAPTURE(row.message, outcome.err);
    CHECK(outcome.status == 2);
    CHECK(outcome.err.find(row.message) != std::string::npos);
  }
}

}  // namespace dstrain::test
