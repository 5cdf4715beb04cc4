// dstrain init: a file of options that fits the machine and trains.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/os/file.h"
#include "tests/e2e/train_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::run_command;
namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

class Init {
 public:
  Init() {
    std::string text;
    for (int i = 0; i < 400; ++i) text += fmt::format("{} squared is {}.\n", i, i * i);
    write_text_file(path("a book.txt"), text);
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_.path() / name).string();
  }
  [[nodiscard]] test::Outcome run(const Words& more) const {
    Words words{"init"};
    words.insert(words.end(), more.begin(), more.end());
    return run_command(words);
  }

 private:
  test::TempDir folder_;
};

}  // namespace

TEST_CASE("Init: a pretraining and a fine-tuning train from what is written", "[e2e][init]") {
  const Init init;
  const std::string file = init.path("run.yaml");
  const test::Outcome wrote =
      init.run({"pretrain", "--output", file, "--train_file", init.path("a book.txt"),
                "--validation-file", init.path("a book.txt"), "--output_dir", init.path("out"),
                "--max_steps=4", "--no_packing", "--config_name", "gpt2", "--config_overrides",
                "n_layer=1,n_embd=32,n_head=2,vocab_size=256,n_positions=64"});
  CAPTURE(wrote.err);
  REQUIRE(wrote.status == 0);
  CHECK_THAT(wrote.out, ContainsSubstring("dstrain --num_gpus 1 train " + file));
  const std::string text = read_text_file(file, 1 << 20);
  CHECK_THAT(text, ContainsSubstring("block_size: 64 ") && ContainsSubstring("max_steps: 4") &&
                       !ContainsSubstring("num_train_epochs") &&
                       ContainsSubstring("eval_strategy: steps ") &&
                       ContainsSubstring("zero_optimization: {\"stage\":0}"));
  const test::Outcome trained = run_command({"train", file});
  CAPTURE(trained.err);
  CHECK(trained.status == 0);
  const test::Outcome tuned = init.run({"finetune", "--output", "-", "--model_name_or_path",
                                        init.path("out"), "--train_file", init.path("a book.txt"),
                                        "--num_gpus", "2", "--output_dir", init.path("tuned")});
  CAPTURE(tuned.err);
  REQUIRE(tuned.status == 0);
  CHECK_THAT(tuned.out, ContainsSubstring("per_device_train_batch_size: 16 ") &&
                            ContainsSubstring("learning_rate: 2e-5") &&
                            ContainsSubstring("# Written by dstrain init for 2 ranks"));
  write_text_file(init.path("tune.yml"), tuned.out);
  const test::Outcome run =
      run_command({"--num_gpus", "2", "train", init.path("tune.yml"), "--max_steps", "2"});
  CAPTURE(run.err);
  CHECK(run.status == 0);
}

TEST_CASE("Init: what it cannot use is refused and nothing is overwritten", "[e2e][init]") {
  const Init init;
  const std::string book = init.path("a book.txt");
  const std::string empty = init.path("empty.txt");
  write_text_file(empty, "");
  write_text_file(init.path("twice.yaml"), "deepspeed: {zero_optimization: {stage: 2}}\n");
  struct Row {
    Words words;
    const char* told;
  };
  for (const Row& row : {
           Row{{"pretrain"}, "init: --train_file FILE is required"},
           Row{{"finetune", "--train_file", book}, "--model_name_or_path DIR is required"},
           Row{{"pretrain", "--train_file", book, "--model_name_or_path", "m"},
               "init pretrain: m has weights already"},
           Row{{"pretrain", "--train_file", book, "--deepspeed", "x.json"},
               "init chooses the configuration"},
           Row{{"pretrain", "--train_file", book, "--learning_rat", "1"},
               "--learning_rat: unknown option"},
           Row{{"pretrain", "--train_file", book, "--zero_stage", "3"},
               "init: --zero_stage: init chooses the stage"},
           Row{{"pretrain", "--train_file", book, "--config", init.path("twice.yaml")},
               "init chooses the configuration"},
           Row{{"pretrain", "--train_file", init.path("nowhere.txt")}, "no such file"},
           Row{{"pretrain", "--train_file", empty, "--output", "-"}, "the file is empty"},
           Row{{"pretrain", "--train_file", book, "--output", ""}, "--output: needs a value"},
           Row{{"pretrain", "--train_file", book, "--output", init.path("no/run.yaml")},
               "there is no directory"},
           Row{{"pretrain", "--train_file", book, "--output_dir", init.path("")},
               "is not empty; choose another"},
           Row{{"guess"}, "TASK"},
           Row{{"pretrain", "--train_file", book, "--output", book}, "exists; name another"},
           Row{{"pretrain", "--train_file", book, "--config_name", "gpt2-xl", "--config_overrides",
                "n_layer=300"},
               "free: a rank takes at least "},
       }) {
    const test::Outcome outcome = init.run(row.words);
    CAPTURE(outcome.err);
    CHECK(outcome.status != 0);
    CHECK_THAT(outcome.err, ContainsSubstring(row.told));
  }
}

TEST_CASE("Init: a file of options and repeated options stand once in what is written",
          "[e2e][init]") {
  const Init init;
  const std::string given = init.path("given.yaml");
  write_text_file(
      given,
      "config_name: gpt2\nconfig_overrides: n_layer=1,n_embd=32,n_head=2,vocab_size=256,"
      "n_positions=64\nseed: 1\nmax_steps: 1\n");
  const test::Outcome wrote =
      init.run({"pretrain", "--config", given, "--train-file", init.path("a book.txt"), "--lr",
                "1e-3", "--seed", "2", "--learning-rate", "1e-3", "--seed", "3", "--output_dir",
                init.path("out"), "--output", "-"});
  CAPTURE(wrote.err);
  REQUIRE(wrote.status == 0);
  CHECK_THAT(wrote.out, ContainsSubstring("\nseed: 3\n") && !ContainsSubstring("seed: 2") &&
                            ContainsSubstring("\nlearning_rate: 1e-3\n") &&
                            !ContainsSubstring("\nlr: ") && !ContainsSubstring("\nconfig: ") &&
                            ContainsSubstring("\nmax_steps: 1\n"));
  const std::string file = init.path("run.yaml");
  write_text_file(file, wrote.out + "  amp: {enabled: false}\n  wall_clock_breakdown: false\n" +
                            "fp16_backend: amp\n");
  const test::Outcome run = run_command({"--num_gpus", "2", "train", file});
  CAPTURE(run.err);
  CHECK(run.status == 0);
  // A rank says so; it has not seen the file.
  const auto lines = std::count(wrote.out.begin(), wrote.out.end(), '\n');
  CHECK_THAT(run.err, ContainsSubstring(
                          fmt::format("{}:{}: --fp16_backend: has no effect", file, lines + 3)));
  write_text_file(file, wrote.out + "validation_file: gone.txt\n");
  CHECK_THAT(run_command({"train", file, "--output_dir", init.path("other")}).err,
             ContainsSubstring(
                 fmt::format("{}:{}: --validation_file gone.txt: no such file", file, lines + 1)));
}
