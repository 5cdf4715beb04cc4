#include <filesystem>

#include "runtime/config/train_options.h"
#include "tests/config/resolved.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain::config;
using dstrain::test::Arguments;
using dstrain::test::contains;
using dstrain::test::message_of;
using dstrain::test::options_error;
using dstrain::test::TempDir;

TEST_CASE("TrainOptions: logging_steps without its strategy gets a warning", "[config][options]") {
  const auto warnings = [](const std::vector<std::string>& arguments) {
    return read_train_flags(arguments).warnings;
  };
  const std::vector<std::string> told{"--logging_steps: has no effect: --logging_strategy is no"};
  CHECK(warnings({"--logging_strategy", "no", "--logging_steps", "1"}) == told);
  CHECK(warnings({"--logging_steps", "1"}).empty());
  // They are the steps between evaluations too.
  CHECK(warnings({"--logging_strategy", "no", "--logging_steps", "1", "--eval_strategy", "steps"})
            .empty());
}

TEST_CASE("TrainOptions: what trains and what evaluates", "[config][options]") {
  struct Row {
    Arguments arguments;
    bool trains;
    bool evaluates;
    std::string strategy;
  };
  const Row row = GENERATE(values<Row>({
      {{}, true, true, "no"},
      {{"--do_train"}, true, true, "no"},
      {{"--do_eval"}, false, true, "no"},
      {{"--do_train", "--do_eval"}, true, true, "no"},
      {{"--do_train", "0", "--do_eval"}, false, true, "no"},
      {{"--do_eval", "false"}, true, false, "no"},
      {{"--do_eval", "false", "--eval_strategy", "epoch"}, true, true, "epoch"},
      {{"--eval_steps", "5"}, true, true, "steps"},
      {{"--evaluation_strategy", "steps"}, true, true, "steps"},
      {{"--eval_steps", "5", "--eval_strategy", "no"}, true, true, "no"},
  }));
  CAPTURE(row.arguments);
  Arguments all = row.arguments;
  all.insert(all.end(), {"--validation_file", "v"});
  const TrainOptions options = read_train_flags(all);
  CHECK(trains(options) == row.trains);
  CHECK(evaluates(options) == row.evaluates);
  CHECK(eval_strategy(options) == row.strategy);
  CHECK_FALSE(evaluates(read_train_flags(row.arguments)));
}

TEST_CASE("TrainOptions: the best model needs checkpoints that are evaluated",
          "[config][options]") {
  struct Row {
    Arguments arguments;
    std::string problem;  ///< a part of it; empty: none
  };
  const Row row = GENERATE(values<Row>({
      {{}, "--eval_strategy is no and --save_strategy is steps"},
      {{"--eval_strategy", "epoch"}, "--eval_strategy is epoch and --save_strategy is steps"},
      {{"--save_strategy", "no"}, "both must be steps, or both epoch, or use --save_strategy best"},
      {{"--eval_strategy", "epoch", "--save_strategy", "epoch"}, ""},
      {{"--eval_strategy", "steps"}, ""},  // 500 and --logging_steps, 10
      {{"--eval_steps", "3", "--save_steps", "9"}, ""},
      {{"--eval_steps", "4", "--save_steps", "10"}, "--save_steps 10 must be a multiple"},
      {{"--eval_steps", "0.1", "--save_steps", "0.3"}, ""},
      {{"--eval_steps", "0.1", "--save_steps", "10"}, "must be a multiple"},
      {{"--eval_steps", "4", "--save_steps", "0"}, "--save_steps is 0"},
      {{"--eval_strategy", "steps", "--save_strategy", "best"}, ""},
  }));
  CAPTURE(row.arguments);
  Arguments all = row.arguments;
  all.emplace_back("--load_best_model_at_end");
  const std::string error = options_error(all);
  CAPTURE(error);
  CHECK((row.problem.empty() ? error == "no error" : contains(error, row.problem)));
}

TEST_CASE("TrainOptions: the option that needs held-out data is named", "[config][options]") {
  const Arguments run = {"--output_dir", "o", "--config_name", "gpt2"};
  const auto told = [&](const Arguments& more) {
    Arguments all = run;
    all.insert(all.end(), more.begin(), more.end());
    return message_of([&] { parse_train_options(all); });
  };
  CHECK(told({"--do_eval"}) ==
        "--do_eval: needs --validation_file FILE, or --split 95,5,0, the shares of training, "
        "validation and test in --train_file");
  CHECK(told({"--do_eval", "--validation_file", "v"}) == "no error");
  CHECK(told({"--do_eval", "--train_file", "t", "--val_size", "0.2"}) ==
        "--val_size 0.2: give --validation_file FILE, or --split 80,20,0; leave it out or set it "
        "to 0");
  CHECK(told({"--do_eval", "--split", "9,1"}) == "--train_file FILE is required");
  CHECK(told({"--train_file", "t", "--evaluation_strategy", "epoch"}) ==
        "--evaluation_strategy: needs --validation_file FILE, or --split 95,5,0, the shares of "
        "training, validation and test in --train_file");
  CHECK(told({"--train_file", "t", "--split", "9,1", "--valid-data", "v"}) ==
        "--split and --valid_data both set held-out data; give one of them");
  Arguments unused = run;
  unused.insert(unused.end(), {"--train_file", "t", "--max_eval_samples", "3"});
  CHECK(parse_train_options(unused).warnings ==
        Arguments{"--max_eval_samples: has no effect: there is no --validation_file"});
}

TEST_CASE("TrainOptions: --load resumes if it holds a checkpoint", "[config][options]") {
  const TempDir folder;
  std::filesystem::create_directories(folder.path() / "run/checkpoint-12");
  std::filesystem::create_directories(folder.path() / "other/checkpoint-x");
  const auto in = [&](const std::string& name) {
    return (folder.path() / name).string();
  };
  const auto source = [](const Arguments& arguments) {
    return resume_source(read_train_flags(arguments));
  };
  CHECK(source({"--load", in("run")}) == in("run"));
  CHECK(source({"--load", in("run/checkpoint-12")}) == in("run/checkpoint-12"));
  CHECK(source({"--load", in("other")}).empty());
  CHECK(source({"--load", in("none")}).empty());
  CHECK(source({"--load", in("run"), "--resume_from_checkpoint", "latest"}) == "latest");
  CHECK(read_train_flags(Arguments{"--load", in("none")}).warnings ==
        Arguments{"--load " + in("none") + ": holds no checkpoint; starting a new run"});
}
