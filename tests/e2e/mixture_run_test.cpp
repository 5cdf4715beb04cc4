// Runs on a mixture of files.
#include <cmath>
#include <fstream>

#include <fmt/format.h>

#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::results_of;
using test::ResumableRun;
using test::TrainRun;

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

/// Records of ASCII text.
std::string write_records(const fs::path& path) {
  std::ofstream file(path);
  for (int i = 0; i < 40; ++i) {
    file << fmt::format("{{\"text\": \"Record {} tells of its number, which is {}.\"}}\n", i,
                        i * i);
  }
  return path.string();
}

}  // namespace

TEST_CASE("Mixture: neither the number of ranks nor a restart changes the result",
          "[e2e][mixture]") {
  const test::TempDir folder;
  const std::string records = write_records(folder.path() / "records.jsonl");
  ResumableRun run;
  run.train_file = {"0.75", "tokens.bin", "0.25", records};
  run.environment = {{"DSTRAIN_CACHE", (folder.path() / "cache").string()}};
  const TrainRun whole = run.train(folder.path() / "whole", 6);
  CAPTURE(whole.err);
  REQUIRE(whole.status == 0);
  CHECK_THAT(whole.err, ContainsSubstring("a mixture of 2 files: an epoch of") &&
                            ContainsSubstring("tokens.bin 1.26 times, ") &&
                            ContainsSubstring("records.jsonl 1.00 times"));

  const fs::path stopped = folder.path() / "stopped";
  REQUIRE(run.train(stopped, 3).status == 0);
  const TrainRun resumed = run.resume(stopped, 6);
  CAPTURE(resumed.err);
  REQUIRE(resumed.status == 0);
  CHECK(results_of(resumed) == results_of(whole));
  CHECK((test::read_bytes(stopped / "model.safetensors") ==
         test::read_bytes(folder.path() / "whole/model.safetensors")));

  ResumableRun alone = run;
  alone.ranks = 1;
  alone.micro_batch = 3;
  const TrainRun on_one = alone.train(folder.path() / "alone", 6);
  REQUIRE(on_one.status == 0);
  REQUIRE(on_one.metrics.size() == whole.metrics.size());
  for (std::size_t i = 0; i < whole.metrics.size(); ++i) {
    const double loss = whole.metrics[i].at("loss");
    CAPTURE(i, loss);
    CHECK(std::abs(on_one.metrics[i].at("loss").get<double>() - loss) < 1e-4 * loss);
  }

  ResumableRun other = run;
  other.train_file[0] = "0.5";
  other.train_file[2] = "0.5";
  const TrainRun refused = other.resume(stopped, 9);
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, ContainsSubstring("the mixture of the training data is") &&
                              ContainsSubstring("(0.75 tokens.bin 0.25 records.jsonl)") &&
                              !ContainsSubstring("rank "));
  const TrainRun retold =
      run.resume(stopped, 9, {"--tokenizer", (test::golden_folder / "tokenizers/gpt2").string()});
  CHECK(retold.status == 2);
  CHECK_THAT(retold.err, ContainsSubstring("the tokenizer is byte in the checkpoint") &&
                             ContainsSubstring("set --tokenizer byte") &&
                             !ContainsSubstring("rank "));
}

TEST_CASE("Mixture: each file is split and both parts are mixed", "[e2e][mixture]") {
  const test::TempDir folder;
  ResumableRun run{.ranks = 1};
  run.train_file = {"2", "tokens.bin", "1", write_records(folder.path() / "records.jsonl")};
  run.environment = {{"DSTRAIN_CACHE", (folder.path() / "cache").string()}};
  const TrainRun split = run.train(folder.path() / "out", 2, {"--split", "3,1,0"});
  CAPTURE(split.err);
  REQUIRE(split.status == 0);
  CHECK_THAT(split.err,
             ContainsSubstring("--split: of each file of the mixture the first part is trained"));
  CHECK(split.metrics.back().contains("eval_loss"));
}
