// Runs of an encoder-decoder over pairs of token ids, as a user starts them.
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/e2e/train_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using nlohmann::json;

namespace {

std::vector<std::string> with(std::vector<std::string> arguments,
                              const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

const std::vector<std::string> toy{"--model_name_or_path",
                                   "pairs/t5",
                                   "--train_file",
                                   "pairs/pairs.jsonl",
                                   "--max_source_length",
                                   "20",
                                   "--max_target_length",
                                   "12",
                                   "--max_steps",
                                   "8",
                                   "--learning_rate",
                                   "1e-3",
                                   "--per_device_train_batch_size",
                                   "3"};

std::vector<double> step_losses(const std::vector<json>& lines) {
  std::vector<double> values;
  for (const json& line : lines) {
    if (line.contains("loss")) values.push_back(line.at("loss"));
  }
  return values;
}

}  // namespace

TEST_CASE("Pairs: a run resumes bit for bit and only with its lengths", "[e2e][pairs]") {
  const test::TempDir folder;
  const auto run = [&](const std::string& out, const std::vector<std::string>& more) {
    return test::run_train(2, {}, folder.path() / out,
                           with(toy, with({"--validation_file", "pairs/pairs.jsonl"}, more)));
  };
  const test::TrainRun whole = run("whole", {"--save_steps", "5"});
  CAPTURE(whole.err);
  REQUIRE(whole.status == 0);
  CHECK(whole.metrics.back().contains("eval_loss"));
  CHECK(whole.metrics[7].at("tokens") == 8 * 6 * (20 + 12));
  CHECK(whole.err.find("6 sequences of 12 tokens from sources of 20 per step") !=
        std::string::npos);
  const std::string checkpoint = (folder.path() / "whole/checkpoint-5").string();
  const test::TrainRun rest = run("rest", {"--resume_from_checkpoint", checkpoint});
  REQUIRE(rest.status == 0);
  const std::vector<double> all = step_losses(whole.metrics);
  CHECK(step_losses(rest.metrics) == std::vector<double>(all.begin() + 5, all.end()));
  const test::TrainRun other =
      run("other", {"--resume_from_checkpoint", checkpoint, "--max_source_length", "18"});
  CHECK(other.status == 2);
  CHECK(other.err.find("max_source_length is 20 in the checkpoint and 18 now: set "
                       "--max_source_length 20") != std::string::npos);
}

TEST_CASE("Pairs: data that does not fit the model is refused", "[e2e][pairs]") {
  const test::TempDir folder;
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& reason) {
    const test::TrainRun run = test::run_train(1, {}, folder.path() / "out", arguments);
    CAPTURE(reason, run.err);
    CHECK(run.status == 2);
    CHECK(run.err.find(reason) != std::string::npos);
  };
  refused(with(toy, {"--block_size", "8"}), "--block_size: t5 is an encoder-decoder");
  refused({"--model_name_or_path", "pairs/t5", "--train_file", "tokens.bin"},
          "an encoder-decoder is trained on pairs");
  refused(
      {"--model_name_or_path", "model", "--train_file", "tokens.bin", "--max_target_length", "8"},
      "--max_target_length: gpt2 is no encoder-decoder");
}

TEST_CASE("Pairs: what is generated is the target alone", "[e2e][pairs]") {
  test::Launch generate({"generate", "--model_name_or_path",
                         (test::golden_folder / "pairs/t5").string(), "--tokenizer", "byte",
                         "--prompt", "0123456789", "--max_new_tokens", "3", "--stream"});
  REQUIRE(generate.wait() == 0);
  CHECK(generate.out().size() == 3 + 1);
}

TEST_CASE("Pairs: a source is encoded by its tokenizer and a target gets an end token",
          "[e2e][pairs]") {
  // Of the tokenizer t5: Hello world - Bye, the cat sat - on the mat, yes - no.
  const test::TempDir folder;
  const std::string data = (folder.path() / "words.jsonl").string();
  std::ofstream(data)
      << R"({"input_ids": [3, 212, 8, 178, 10, 3, 42, 70, 14, 15, 1],)"
      << R"( "labels": [3, 228, 35, 8, 1]})"
      << "\n"
      << R"({"input_ids": [12, 84, 62, 3, 4, 62, 1], "labels": [71, 12, 202, 13, 1]})"
      << "\n"
      << R"({"input_ids": [3, 35, 88, 1], "labels": [147, 1]})"
      << "\n";
  const test::TrainRun run = test::run_train(
      1, {}, folder.path() / "out",
      {"--config_name", "t5-small", "--config_overrides",
       "d_model=32,d_kv=8,d_ff=48,num_heads=4,num_layers=1,vocab_size=1200", "--train_file", data,
       "--max_source_length", "12", "--max_target_length", "6", "--max_steps", "150",
       "--per_device_train_batch_size", "3", "--learning_rate", "1e-2"});
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  REQUIRE(run.metrics.back().at("loss").get<double>() < 0.1);
  const auto answer = [&](const std::string& prompt) {
    test::Launch generate({"generate", "--model_name_or_path", (folder.path() / "out").string(),
                           "--tokenizer", (test::golden_folder / "tokenizers/t5").string(),
                           "--prompt", prompt, "--max_new_tokens", "20", "--stream"});
    REQUIRE(generate.wait() == 0);
    return generate.out();
  };
  CHECK(answer("Hello world") == "Bye\n");
  CHECK(answer("the cat sat") == "on the mat\n");
  CHECK(answer("yes") == "no\n");
}
