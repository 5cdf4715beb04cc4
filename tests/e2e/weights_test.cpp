// Runs that start from the weights of a checkpoint, and from nothing else of it.
#include <fstream>

#include <fmt/format.h>

#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::Outcome;
using test::results_of;
using test::ResumableRun;
using test::run_command;

namespace {

namespace fs = std::filesystem;

/// A run of as many ranks as `like` has, at its stage and in its precision, from the model in
/// `directory`.
test::TrainRun train_from(const fs::path& directory,
                          const ResumableRun& like,
                          const fs::path& output) {
  return test::run_train(like.ranks, like.config(), output,
                         {"--model_name_or_path", directory.string(), "--train_file", "tokens.bin",
                          "--block_size", "32", "--max_steps", "3"});
}

Outcome generate_from(const fs::path& directory) {
  return run_command({"generate", "--model_name_or_path", directory.string(), "--prompt", "ab ab",
                      "--max_new_tokens", "20", "--do_sample"});
}

/// The output directory of a run that has saved its third step.
fs::path trained(const fs::path& folder, const ResumableRun& run) {
  std::vector<std::string> arguments = run.arguments(3);
  arguments[3] = "n_layer=2,n_embd=48,n_head=4,vocab_size=256,n_positions=32,attn_pdrop=0.1";
  const fs::path output = folder / "first";
  REQUIRE(test::run_train(run.ranks, run.config(), output, arguments).status == 0);
  return output;
}

}  // namespace

TEST_CASE("Weights: a checkpoint starts the run that its export does", "[e2e][checkpoint]") {
  struct Row {
    ResumableRun before;
    ResumableRun after;
  };
  const auto row =
      GENERATE(Row{{.ranks = 3, .stage = 2, .bf16 = true}, {.ranks = 2, .stage = 3}},
               Row{{.ranks = 1, .stage = 0}, {.ranks = 4, .stage = 1, .bf16 = true}},
               Row{{.ranks = 2, .stage = 3, .bf16 = true}, {.ranks = 3, .stage = 2, .bf16 = true}},
               Row{{.ranks = 2, .stage = 1}, {.ranks = 1, .stage = 0}});
  CAPTURE(row.before.ranks, row.after.ranks);
  const test::TempDir folder;
  const fs::path checkpoint = trained(folder.path(), row.before) / "checkpoint-3";
  const fs::path exported = folder.path() / "exported";
  REQUIRE(run_command({"checkpoint", "export", checkpoint.string(), exported.string()}).status ==
          0);
  const test::TrainRun expected = train_from(exported, row.after, folder.path() / "from_export");
  const test::TrainRun run = train_from(checkpoint, row.after, folder.path() / "from_checkpoint");
  CAPTURE(run.err);
  REQUIRE(expected.status == 0);
  REQUIRE(run.status == 0);
  CHECK(results_of(run) == results_of(expected));
  CHECK(run.metrics.front().at("step") == 1);
  CHECK((test::read_bytes(folder.path() / "from_checkpoint/model.safetensors") ==
         test::read_bytes(folder.path() / "from_export/model.safetensors")));

  const Outcome said = generate_from(checkpoint);
  CAPTURE(said.err);
  CHECK(said.status == 0);
  CHECK(said.out.size() > 20);
  CHECK(said.out == generate_from(exported).out);
}

TEST_CASE("Weights: damage is reported with its place", "[e2e][checkpoint]") {
  struct Row {
    std::string file;
    std::string told;
    bool before_ranks = true;
  };
  const std::string shard = "global_step3/zero_pp_rank_1_mp_rank_00_optim_states.safetensors";
  const auto row = GENERATE_COPY(Row{shard, "damaged at byte 0 (chunk of ", false},
                                 Row{"config.json", "damaged at byte 0 (chunk of "},
                                 Row{"manifest.json", "damaged: its "});
  CAPTURE(row.file);
  const test::TempDir folder;
  const ResumableRun like{.stage = 3};
  const fs::path checkpoint = trained(folder.path(), like) / "checkpoint-3";
  const fs::path damaged = checkpoint / row.file;
  test::flip_byte(damaged, fs::file_size(damaged) / 5);
  const test::TrainRun run = train_from(checkpoint, like, folder.path() / "next");
  const Outcome said = generate_from(checkpoint);
  for (const auto& [status, err] : {std::pair(run.status, run.err), {said.status, said.err}}) {
    CAPTURE(err);
    CHECK(status == 2);
    CHECK_THAT(err, ContainsSubstring(damaged.string() + ": ") && ContainsSubstring(row.told));
    CHECK((err.find("rank ") == std::string::npos) == row.before_ranks);
  }
}

TEST_CASE("Weights: a directory without a model is refused before a rank starts",
          "[e2e][checkpoint]") {
  const test::TempDir folder;
  const ResumableRun like{.stage = 1};
  const fs::path output = trained(folder.path(), like);
  const fs::path checkpoint = output / "checkpoint-3";
  const auto refused = [&](const fs::path& model, const std::string& next,
                           const std::string& message) {
    const test::TrainRun run = train_from(model, like, folder.path() / next);
    CAPTURE(run.err);
    CHECK(run.status == 2);
    CHECK_THAT(run.err, ContainsSubstring(message) && !ContainsSubstring("rank "));
  };
  refused(checkpoint, "first/checkpoint-3", "is a checkpoint; choose another directory");
  refused(checkpoint, "first", "holds checkpoint-3, which would be taken");
  fs::create_directories(output / "checkpoint-1");
  for (const char* file : {"model.safetensors", "config.json"}) {
    fs::remove(output / file);
    refused(output, "next", std::string("holds no ") + file);
    refused(output, "next", "give " + checkpoint.string());
    CHECK_THAT(generate_from(output).err, ContainsSubstring("give " + checkpoint.string()));
  }
  const std::string latest = test::read_bytes(checkpoint / "latest");
  std::ofstream(checkpoint / "latest", std::ios::binary) << latest.substr(1);
  refused(checkpoint, "next", "latest: truncated: has 11 bytes, 12 expected");
}
