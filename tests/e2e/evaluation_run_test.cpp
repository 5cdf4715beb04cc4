// Runs that evaluate: when, on what, and what becomes of the best checkpoint.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using nlohmann::json;
using test::ResumableRun;
using test::TrainRun;
namespace fs = std::filesystem;

namespace {

struct HeldOut {
  std::int64_t step = 0;
  double loss = 0;
};

std::vector<HeldOut> held_out(const TrainRun& run) {
  std::vector<HeldOut> losses;
  for (const json& line : run.metrics) {
    if (line.contains("eval_loss")) losses.push_back({line.at("step"), line.at("eval_loss")});
  }
  return losses;
}

std::vector<std::int64_t> evaluated_steps(const TrainRun& run) {
  std::vector<std::int64_t> steps;
  for (const HeldOut& one : held_out(run)) steps.push_back(one.step);
  return steps;
}

/// The files in a directory and below, by their path within it, but for the lock.
std::map<fs::path, std::string> contents_of(const fs::path& directory) {
  std::map<fs::path, std::string> contents;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file() || entry.path().filename() == "job.lock") continue;
    contents[entry.path().lexically_relative(directory)] = test::read_bytes(entry.path());
  }
  return contents;
}

std::set<std::int64_t> saved_steps(const fs::path& output) {
  std::set<std::int64_t> steps;
  for (const auto& entry : fs::directory_iterator(output)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("checkpoint-")) steps.insert(std::stoll(name.substr(11)));
  }
  return steps;
}

/// Ten steps to an epoch. The rate is so high that the loss rises and falls.
const ResumableRun wild{.clipping = 0,
                        .more = {"--validation_file", "tokens.bin", "--max_eval_samples", "9"}};

json state_of(const fs::path& output, std::int64_t step) {
  return test::read_json(output / fmt::format("checkpoint-{}", step) / "trainer_state.json");
}

HeldOut best_of(const std::vector<HeldOut>& losses) {
  return *std::ranges::min_element(losses, {}, &HeldOut::loss);
}

using Steps = std::vector<std::int64_t>;
using StepSet = std::set<std::int64_t>;

}  // namespace

TEST_CASE("Evaluation: strategies decide when to evaluate", "[e2e][evaluation]") {
  struct Row {
    std::vector<std::string> arguments;
    int steps;
    Steps evaluated;
    StepSet saved;
  };
  const Row row = GENERATE(values<Row>({
      {{}, 7, {7}, {7}},
      {{"--eval_strategy", "steps", "--eval_steps", "3"}, 7, {3, 6, 7}, {7}},
      {{"--eval_strategy", "epoch", "--save_strategy", "epoch"}, 23, {11, 22, 23}, {11, 22, 23}},
      {{"--eval_strategy", "no", "--eval_steps", "3", "--save_strategy", "no"}, 7, {7}, {}},
      {{"--do_eval", "false", "--save_steps", "0.5"}, 8, {}, {4, 8}},
  }));
  CAPTURE(row.arguments);
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const TrainRun run = wild.train(output, row.steps, row.arguments);
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  CHECK(evaluated_steps(run) == row.evaluated);
  CHECK(saved_steps(output) == row.saved);
}

TEST_CASE("Evaluation: a held-out loss that is not finite ends the run", "[e2e][evaluation]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const TrainRun run =
      test::run_train(2, {}, output,
                      {"--model_name_or_path", (test::golden_folder / "model").string(),
                       "--train_file", "tokens.bin", "--validation_file", "tokens.bin",
                       "--block_size", "16", "--per_device_train_batch_size", "2", "--save_steps",
                       "0", "--max_steps", "1", "--learning_rate", "1e20"});
  CAPTURE(run.err);
  CHECK(run.status == 1);
  CHECK_THAT(run.err, Catch::Matchers::ContainsSubstring(
                          "the held-out loss is nan: the weights are too large"));
  CHECK_FALSE(fs::exists(output / "model.safetensors"));
}

TEST_CASE("Evaluation: the batch size changes only the planned memory", "[e2e][evaluation]") {
  const int stage = GENERATE(0, 3);
  const test::TempDir folder;
  const auto evaluate = [&](const std::string& batch) {
    ResumableRun run = wild;
    run.stage = stage;
    run.micro_batch = 2;
    return run.train(folder.path() / batch, 2,
                     {"--save_steps", "0", "--per_device_eval_batch_size", batch,
                      "--max_eval_samples", "13", "--logging_steps", "1"});
  };
  const TrainRun one = evaluate("1");
  const TrainRun many = evaluate("64");
  CAPTURE(one.err, many.err);
  REQUIRE(one.status == 0);
  REQUIRE(many.status == 0);
  REQUIRE(held_out(one).size() == 1);
  const double loss = held_out(one).front().loss;
  CHECK(std::abs(held_out(many).front().loss - loss) <= 1e-6 * loss);
  CHECK(one.metrics[0].at("loss") == many.metrics[0].at("loss"));
  CHECK(one.metrics[0].at("memory").at("device") < many.metrics[0].at("memory").at("device"));
  for (const TrainRun& run : {one, many}) {
    CHECK(run.metrics[0].at("device_memory") == run.metrics[0].at("planned_device_memory"));
  }
}

TEST_CASE("Evaluation: the best checkpoint is kept and exported", "[e2e][evaluation]") {
  const int stage = GENERATE(0, 3);
  const bool bf16 = GENERATE(false, true);
  CAPTURE(stage, bf16);
  const test::TempDir folder;
  ResumableRun run = wild;
  run.stage = stage;
  run.bf16 = bf16;
  const std::vector<std::string> options{"--load_best_model_at_end",
                                         "--eval_strategy",
                                         "steps",
                                         "--eval_steps",
                                         "2",
                                         "--save_steps",
                                         "2",
                                         "--greater_is_better"};  // losses fall: an early one
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), options.begin(), options.end());
    return more;
  };
  const fs::path whole = folder.path() / "whole";
  const TrainRun first = run.train(whole, 12, with({}));
  CAPTURE(first.err, first.out);
  REQUIRE(first.status == 0);
  const std::vector<HeldOut> losses = held_out(first);
  const HeldOut best = *std::ranges::max_element(losses, {}, &HeldOut::loss);
  REQUIRE(best.step < 12);
  const json state = state_of(whole, 12);
  CHECK(state.at("best_metric") == best.loss);
  CHECK(state.at("best_global_step") == best.step);
  CHECK(state.at("best_model_checkpoint") == fmt::format("checkpoint-{}", best.step));

  // The run that ends there has the same model.
  const fs::path until = folder.path() / "until";
  REQUIRE(run.train(until, static_cast<int>(best.step)).status == 0);
  CHECK((test::read_bytes(whole / "model.safetensors") ==
         test::read_bytes(until / "model.safetensors")));

  // Cut, gone on with, and pruned: the same.
  const fs::path cut = folder.path() / "cut";
  REQUIRE(run.train(cut, 6, with({"--save_total_limit", "1"})).status == 0);
  const TrainRun rest = run.resume(cut, 12, with({"--save_total_limit", "1"}));
  CAPTURE(rest.err);
  REQUIRE(rest.status == 0);
  CHECK(saved_steps(cut) == StepSet{best.step, 12});
  CHECK((test::read_bytes(cut / "model.safetensors") ==
         test::read_bytes(whole / "model.safetensors")));
}

TEST_CASE("Evaluation: the best checkpoint is what a run's export holds", "[e2e][evaluation]") {
  const bool asks = GENERATE(true, false);
  const test::TempDir folder;
  const fs::path output = folder.path() / "run";
  std::vector<std::string> options{"--eval_steps", "2", "--save_steps", "2"};
  // Losses fall: the first checkpoint is the one with the greatest.
  if (asks) options.insert(options.end(), {"--load_best_model_at_end", "--greater_is_better"});
  const TrainRun run = wild.train(output, 6, options);
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  const auto do_export = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> command{"checkpoint", "export", output.string(),
                                     (folder.path() / name).string()};
    command.insert(command.end(), more.begin(), more.end());
    return test::run_command(command);
  };
  const auto weights = [&](const std::string& name) {
    return test::read_bytes(folder.path() / name / "model.safetensors");
  };
  const test::Outcome exported = do_export("model", {});
  CHECK(exported.status == 0);
  CHECK_THAT(exported.out,
             Catch::Matchers::ContainsSubstring(asks ? "checkpoint-2" : "checkpoint-6"));
  CHECK((exported.err.find("--load_best_model_at_end") != std::string::npos) == asks);
  CHECK((weights("model") == weights("run")));
  REQUIRE(do_export("tagged", {"--tag", "global_step4"}).status == 0);
  CHECK((weights("tagged") != weights("run")));

  // Without the model that the run has left, its checkpoint is proposed.
  fs::remove(output / "config.json");
  const test::Outcome started =
      test::run_command({"generate", "--prompt", "a", "--model_name_or_path", output.string()});
  CHECK(started.status == 2);
  CHECK_THAT(started.err, Catch::Matchers::ContainsSubstring(
                              (output / (asks ? "checkpoint-2" : "checkpoint-6")).string()));

  // The newest that is whole stands in for the last one, but nothing for the best one.
  const std::string last = asks ? "2" : "6";
  test::flip_byte(output / ("checkpoint-" + last) / "trainer_state.json", 10);
  const test::Outcome damaged = do_export("damaged", {});
  CHECK(damaged.status == (asks ? 2 : 0));
  CHECK_THAT(damaged.err, Catch::Matchers::ContainsSubstring(
                              asks ? "pass --tag global_stepN to export another" : "passed over"));
}

TEST_CASE("Evaluation: the best of an earlier run counts only on the same data",
          "[e2e][evaluation]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const std::vector<std::string> often{"--eval_steps", "2", "--save_steps", "2"};
  const TrainRun first = wild.train(output, 4, often);
  CAPTURE(first.err);
  REQUIRE(first.status == 0);
  const HeldOut best = best_of(held_out(first));
  std::vector<std::string> asks = often;
  asks.emplace_back("--load_best_model_at_end");
  SECTION("on the same") {
    const TrainRun second = wild.resume(output, 4, asks);  // nothing is left to train
    CAPTURE(second.err, second.out);
    REQUIRE(second.status == 0);
    CHECK(second.out.find(fmt::format("checkpoint-{} | held-out", best.step)) != std::string::npos);
    CHECK(second.err.find("evaluated") == std::string::npos);
  }
  SECTION("on other") {
    asks.insert(asks.end(), {"--max_eval_samples", "1"});
    const TrainRun second = wild.resume(output, 6, asks);
    CAPTURE(second.err);
    REQUIRE(second.status == 0);
    CHECK(second.err.find("is forgotten") != std::string::npos);
    CHECK(state_of(output, 6).at("best_global_step") == 6);
  }
}

TEST_CASE("Evaluation: a best checkpoint elsewhere is exported and a damaged one is named",
          "[e2e][evaluation]") {
  const test::TempDir folder;
  const std::vector<std::string> options{
      "--load_best_model_at_end", "--eval_steps", "2", "--save_steps", "2", "--greater_is_better"};
  const fs::path first = folder.path() / "first";
  REQUIRE(wild.train(first, 6, options).status == 0);
  REQUIRE(state_of(first, 6).at("best_global_step") == 2);
  std::vector<std::string> resumed = options;
  resumed.insert(resumed.end(), {"--resume_from_checkpoint", first.string()});
  const fs::path second = folder.path() / "second";
  const TrainRun rest = wild.train(second, 8, resumed);
  CAPTURE(rest.err);
  REQUIRE(rest.status == 0);
  CHECK(state_of(second, 8).at("best_model_checkpoint") == (first / "checkpoint-2").string());
  CHECK((test::read_bytes(first / "model.safetensors") ==
         test::read_bytes(second / "model.safetensors")));

  test::flip_byte(
      first / "checkpoint-2/global_step2/zero_pp_rank_0_mp_rank_00_optim_states.safetensors", 9000);
  const TrainRun damaged = wild.resume(second, 8, options);
  CHECK(damaged.status == 2);
  CHECK(damaged.err.find("--load_best_model_at_end: ") != std::string::npos);
  CHECK(damaged.err.find("damaged at byte 0") != std::string::npos);
}

TEST_CASE("Evaluation: the lowest loss is the best one", "[e2e][evaluation]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const TrainRun run = wild.train(output, 9,
                                  {"--save_strategy", "best", "--eval_steps", "1",
                                   "--load_best_model_at_end", "--learning_rate", "2e-3"});
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  double lowest = 1e9;
  StepSet better;
  for (const HeldOut& one : held_out(run)) {
    if (one.loss < lowest) better.insert(one.step);
    lowest = std::min(lowest, one.loss);
  }
  CHECK(saved_steps(output) == better);
  const HeldOut best = best_of(held_out(run));
  CHECK(state_of(output, best.step).at("best_metric") == best.loss);
  CHECK(run.out.find(fmt::format("best checkpoint: {}",
                                 (output / fmt::format("checkpoint-{}", best.step)).string())) !=
        std::string::npos);
}

TEST_CASE("Evaluation: without training", "[e2e][evaluation]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const TrainRun trained = wild.train(output, 3);
  CAPTURE(trained.err);
  REQUIRE(trained.status == 0);
  const std::string all_results = R"({"train_loss": 2.5, "eval_loss": 9})";
  std::ofstream(output / "all_results.json") << all_results;
  const std::map<fs::path, std::string> before = contents_of(output);
  const int ranks = GENERATE(1, 2);
  const int stage = GENERATE(0, 3);
  CAPTURE(ranks, stage);
  const json config{{"train_micro_batch_size_per_gpu", 4},
                    {"zero_optimization", {{"stage", stage}}}};
  const TrainRun run =
      test::run_train(ranks, config, output,
                      {"--model_name_or_path", output.string(), "--do_eval", "--validation_file",
                       "tokens.bin", "--block_size", "32", "--max_eval_samples", "9"});
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  CHECK(run.err.find("--do_eval: evaluates and does not train") != std::string::npos);
  const json results = test::read_json(output / "eval_results.json");
  const double loss = held_out(trained).back().loss;
  const double found = results.at("eval_loss");
  CHECK(std::abs(found - loss) <= 1e-6 * loss);
  CHECK(results.at("perplexity") == std::exp(found));
  CHECK(results.at("eval_samples") == 9);
  CHECK(results.at("eval_runtime") > 0);
  CHECK(results.at("eval_samples_per_second") == 9 / results.at("eval_runtime").get<double>());
  const json all = test::read_json(output / "all_results.json");
  CHECK(all.at("train_loss") == 2.5);
  CHECK(all.at("eval_loss") == found);
  // The training's own files stay.
  std::map<fs::path, std::string> after = contents_of(output);
  after.erase("eval_results.json");
  after["all_results.json"] = all_results;
  CHECK((after == before));
}

TEST_CASE("Evaluation: without training only its own files are written", "[e2e][evaluation]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const TrainRun run = test::run_train(
      1, nullptr, output,
      {"--model_name_or_path", (test::golden_folder / "model").string(), "--do_eval",
       "--validation_file", "tokens.bin", "--block_size", "32", "--max_eval_samples", "9"});
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  std::set<fs::path> names;
  for (const auto& [name, bytes] : contents_of(output)) names.insert(name);
  CHECK(names == std::set<fs::path>{"all_results.json", "eval_results.json"});
}

TEST_CASE("Evaluation: without training the budget of the plan is enough", "[e2e][evaluation]") {
  const std::string stage = GENERATE("0", "3");
  const test::TempDir folder;
  const auto status = [&](std::int64_t budget, std::vector<std::string> launch) {
    launch.insert(launch.end(), {"--num_gpus", "2", "--device", "cpu", "--device_memory",
                                 std::to_string(budget), "train", "--do_eval"});
    for (const std::string& word : wild.arguments(1)) launch.push_back(word);
    launch.insert(launch.end(),
                  {"--zero_stage", stage, "--output_dir", (folder.path() / "out").string()});
    test::Launch run(launch, {.env = {}, .directory = test::golden_folder.string()});
    return run.wait();
  };
  std::int64_t refused = 0;
  std::int64_t enough = 16 << 20;
  while (enough - refused > 1) {
    const std::int64_t middle = (refused + enough) / 2;
    (status(middle, {"--dry_run"}) == 0 ? enough : refused) = middle;
  }
  CAPTURE(enough);
  CHECK(status(enough, {}) == 0);
}

TEST_CASE("Evaluation: the first samples alone", "[e2e][evaluation]") {
  const test::TempDir folder;
  const auto train = [&](const std::string& name, std::vector<std::string> more) {
    more.insert(more.end(), {"--no_shuffle", "--save_steps", "0", "--num_train_epochs", "2"});
    return wild.train(folder.path() / name, -1, more);
  };
  const TrainRun some = train("some", {"--max_train_samples", "25"});
  CAPTURE(some.err);
  REQUIRE(some.status == 0);
  CHECK(some.metrics.size() == 6 + 1);  // two steps of 12 and one of 1 in an epoch
  CHECK(some.metrics[2].at("epoch") == 1.0);
  CHECK(some.metrics[5].at("tokens") == 2 * 25 * 32);
  const TrainRun whole =
      train("whole", {"--max_train_samples", "25", "--dataloader_drop_last", "true"});
  CHECK(whole.metrics.size() == 4 + 1);
  CHECK(whole.metrics[1].at("epoch") == 1.0);
  const TrainRun few = train("few", {"--max_train_samples", "11"});
  CHECK(few.metrics.size() == 2 + 1);
  CHECK(few.metrics[1].at("tokens") == 2 * 11 * 32);
  const TrainRun none = train("none", {"--max_train_samples", "11", "--dataloader_drop_last"});
  CHECK(none.status == 2);
  CHECK(none.err.find("11 samples of 32 tokens do not fill one batch of 12") != std::string::npos);
}

TEST_CASE("Evaluation: the order of samples has a seed of its own", "[e2e][evaluation]") {
  const test::TempDir folder;
  const auto losses_with = [&](const std::vector<std::string>& more) {
    const TrainRun run =
        wild.train(folder.path() / fmt::format("{}", fmt::join(more, "")), 3, more);
    REQUIRE(run.status == 0);
    std::vector<double> losses;
    for (const json& line : run.metrics) {
      if (line.contains("loss")) losses.push_back(line.at("loss"));
    }
    return losses;
  };
  const auto plain = losses_with({"--seed", "42"});
  CHECK(losses_with({"--data_seed", "42"}) == plain);
  CHECK(losses_with({"--data_seed", "7"}) != plain);
  const TrainRun other = wild.resume(folder.path() / "--data_seed7", 5, {"--data_seed", "8"});
  CHECK(other.status == 2);
  CHECK(
      other.err.find("the seed of shuffling is 7 in the checkpoint and 8 now: set --data_seed 7") !=
      std::string::npos);
}

TEST_CASE("Evaluation: a file is split in two", "[e2e][evaluation]") {
  const test::TempDir folder;
  ResumableRun run{.more = {"--split", "8,2", "--do_train", "--do_eval"}};
  const TrainRun split = run.train(folder.path() / "split", 3);
  CAPTURE(split.err);
  REQUIRE(split.status == 0);
  REQUIRE(held_out(split).size() == 1);
  const json state = state_of(folder.path() / "split", 3);
  const std::int64_t samples = state.at("data").at("samples");
  CHECK(split.err.find(fmt::format("the first {} are trained on", samples)) != std::string::npos);

  // As many samples by the other option: the same run.
  run.more = {"--max_train_samples", fmt::format("{}", samples)};
  const TrainRun first = run.train(folder.path() / "first", 3);
  REQUIRE(first.status == 0);
  CHECK(split.metrics[2].at("loss") == first.metrics[2].at("loss"));

  run.more = {"--split", "1,999,0"};
  const TrainRun none = run.train(folder.path() / "none", 3);
  CHECK(none.status == 2);
  CHECK(none.err.find("--split leaves none of its ") != std::string::npos);
}

TEST_CASE("Evaluation: --load resumes or starts a new run", "[e2e][evaluation]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const std::string there = output.string();
  const TrainRun begun = wild.train(output, 3, {"--load", there});
  CAPTURE(begun.err);
  REQUIRE(begun.status == 0);
  CHECK(begun.err.find("--load " + there + ": holds no checkpoint; starting a new run") !=
        std::string::npos);
  const TrainRun rest = wild.train(output, 5, {"--load", there});
  CAPTURE(rest.err);
  REQUIRE(rest.status == 0);
  CHECK(rest.err.find("going on from " + (output / "checkpoint-3").string()) != std::string::npos);
  CHECK(evaluated_steps(rest) == Steps{3, 5});
}
