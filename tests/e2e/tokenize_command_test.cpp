// `dstrain tokenize`, and training on what it writes.
#include <fstream>

#include <fmt/format.h>

#include "tests/e2e/train_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::run_command;
using test::TrainRun;

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

const fs::path gpt2_tokenizer = test::golden_folder / "tokenizers/gpt2";

void write_json_lines(const fs::path& path, int first, int count) {
  std::ofstream file(path, std::ios::binary);
  for (int i = first; i < first + count; ++i) {
    file << fmt::format("{{\"text\": \"Record {} of these, about \u00e9t\u00e9.\"}}\n", i);
  }
}

TrainRun train_on(const fs::path& data, const fs::path& output, const Words& more = {}) {
  Words words{"--config_name",
              "gpt2",
              "--config_overrides",
              "vocab_size=1000,n_layer=1,n_embd=32,n_head=2,n_positions=64",
              "--block_size",
              "32",
              "--per_device_train_batch_size",
              "2",
              "--max_steps",
              "4",
              "--no_shuffle",
              "--train_file",
              data.string()};
  words.insert(words.end(), more.begin(), more.end());
  return test::run_train(1, nullptr, output, words,
                         {{"DSTRAIN_CACHE", (output.parent_path() / "cache").string()}});
}

}  // namespace

TEST_CASE("tokenize: training on its shards is training on the text", "[e2e]") {
  const test::TempDir folder;
  const std::string format = GENERATE("llmc", "megatron");
  fs::create_directories(folder.path() / "corpus/more");
  write_json_lines(folder.path() / "all.jsonl", 0, 60);
  write_json_lines(folder.path() / "corpus/a.jsonl", 0, 25);
  write_json_lines(folder.path() / "corpus/more/b.jsonl", 25, 35);
  const fs::path shards = folder.path() / "shards";
  const Words command{"tokenize",
                      "--tokenizer",
                      gpt2_tokenizer.string(),
                      "--output_dir",
                      shards.string(),
                      "--format",
                      format,
                      "--shard_tokens",
                      "300",
                      "--num_workers",
                      "2",
                      (folder.path() / "corpus").string()};
  const test::Outcome made = run_command(command);
  CAPTURE(made.err);
  REQUIRE(made.status == 0);
  CHECK_THAT(made.out, ContainsSubstring("tokens of 60 documents in"));
  CHECK(fs::exists(shards / "tokens_000001.bin"));

  const TrainRun of_text = train_on(folder.path() / "all.jsonl", folder.path() / "text",
                                    {"--tokenizer", gpt2_tokenizer.string()});
  const TrainRun of_shards = train_on(shards, folder.path() / "tokens");
  CAPTURE(of_text.err, of_shards.err);
  REQUIRE(of_shards.status == 0);
  REQUIRE(of_shards.metrics.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(of_shards.metrics[i].at("loss") == of_text.metrics.at(i).at("loss"));
  }
  CHECK((test::read_bytes(folder.path() / "tokens/tokenizer.json") ==
         test::read_bytes(gpt2_tokenizer / "tokenizer.json")));
  for (const char* const run : {"text", "tokens"}) {
    CHECK(test::read_json(folder.path() / run / "config.json").at("eos_token_id") == 0);
  }

  const TrainRun inside = train_on(shards, shards, {"--overwrite_output_dir"});
  CHECK(inside.status == 2);
  CHECK_THAT(inside.err, ContainsSubstring("--output_dir " + shards.string() + ": ") &&
                             ContainsSubstring("holds the token shards of dstrain tokenize"));
  const std::string out = (folder.path() / "wrong").string();
  const test::Outcome model = run_command({"train", "--model_name_or_path", shards.string(),
                                           "--train_file", shards.string(), "--output_dir", out});
  CHECK_THAT(model.err,
             ContainsSubstring("holds the token shards of dstrain tokenize, not a model"));
  const TrainRun resumed = train_on(shards, out, {"--resume_from_checkpoint", shards.string()});
  CHECK(resumed.status == 2);
  CHECK_THAT(resumed.err, ContainsSubstring("holds the token shards of dstrain tokenize, not a "
                                            "checkpoint"));
  const TrainRun other = train_on(shards, folder.path() / "other", {"--tokenizer", "byte"});
  CHECK(other.status == 2);
  CHECK_THAT(other.err, ContainsSubstring("were made by another; leave it out"));

  // What is whole stays as it is.
  const test::Outcome again = run_command(command);
  CHECK(again.status == 0);
  CHECK(again.out.starts_with(shards.string()));
}

TEST_CASE("tokenize: two tokenizers cannot share a directory or a run", "[e2e]") {
  const test::TempDir folder;
  const fs::path shards = folder.path() / "shards";
  const fs::path text = folder.path() / "a.jsonl";
  write_json_lines(text, 0, 60);
  const auto make = [&](const fs::path& tokenizer, const Words& more) {
    Words words{"tokenize",     "--tokenizer",   tokenizer.string(),
                "--output_dir", shards.string(), text.string()};
    words.insert(words.end(), more.begin(), more.end());
    return run_command(words);
  };
  REQUIRE(make(gpt2_tokenizer, {}).status == 0);
  const TrainRun mixed =
      train_on(text, folder.path() / "mixed", {"--validation_file", shards.string(), "--do_eval"});
  CHECK(mixed.status == 2);
  CHECK_THAT(mixed.err,
             ContainsSubstring("its tokens were made by another tokenizer than byte, by which"));

  const fs::path llama = test::golden_folder / "tokenizers/llama2";
  const test::Outcome refused = make(llama, {});
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err,
             ContainsSubstring("belongs to another tokenizer; choose another directory"));
  CHECK((test::read_bytes(shards / "tokenizer.json") ==
         test::read_bytes(gpt2_tokenizer / "tokenizer.json")));
  std::ofstream(shards / "merges.txt") << "of another";
  REQUIRE(make(llama, {"--overwrite_output_dir"}).status == 0);
  CHECK(
      (test::read_bytes(shards / "tokenizer.json") == test::read_bytes(llama / "tokenizer.json")));
  CHECK_FALSE(fs::exists(shards / "merges.txt"));

  const TrainRun run =
      train_on(shards, folder.path() / "run", {"--config_overrides", "vocab_size=1200,n_layer=1"});
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  const auto config = test::read_json(folder.path() / "run/config.json");
  CHECK(config.at("bos_token_id") == 1);
  CHECK(config.at("eos_token_id") == 2);
}

TEST_CASE("tokenize: wrong usage and unfinished shards are refused", "[e2e]") {
  const test::TempDir folder;
  const std::string out = (folder.path() / "out").string();
  write_json_lines(folder.path() / "a.jsonl", 0, 3);
  const std::string data = (folder.path() / "a.jsonl").string();
  const auto error_of = [](Words words) {
    words.insert(words.begin(), "tokenize");
    const test::Outcome outcome = run_command(words);
    CHECK(outcome.status == 2);
    return outcome.err;
  };
  CHECK_THAT(error_of({"--tokenizer", "byte", data}), ContainsSubstring("--output_dir"));
  CHECK_THAT(error_of({"--output_dir", out, data}), ContainsSubstring("--tokenizer"));
  CHECK_THAT(error_of({"--output_dir", out, "--train", data}), ContainsSubstring("--vocab_size"));
  CHECK_THAT(error_of({"--output_dir", out, "--train", "--vocab_size", "100", data}),
             ContainsSubstring("257"));
  CHECK_THAT(error_of({"--tokenizer", "byte", "--output_dir", out}), ContainsSubstring("--input"));
  CHECK_THAT(error_of({"--tokenizer", "byte", "--output_dir", out, data + "x"}),
             ContainsSubstring("no such file"));
  CHECK_THAT(error_of({"--tokenizer", "byte", "--output_dir", out,
                       (folder.path() / "**/*.jsonl").string()}),
             ContainsSubstring("** is not supported in a pattern"));
  CHECK_THAT(error_of({"--tokenizer", "byte", "--output_dir", data, data}),
             ContainsSubstring("cannot write to ") && ContainsSubstring(": Not a directory"));
  CHECK_THAT(error_of({"--tokenizer", folder.path().string(), "--output_dir", out, data}),
             ContainsSubstring("holds no tokenizer"));
  CHECK_THAT(error_of({"--tokenizer", "byte", "--output_dir", out, "--shard_tokens", "0", data}),
             ContainsSubstring("--shard_tokens"));
  CHECK_FALSE(fs::exists(out));

  CHECK_THAT(error_of({"--tokenizer", "byte", "--output_dir", out, "--text_column", "body", data}),
             ContainsSubstring("a.jsonl:1: body is missing"));
  const TrainRun run = train_on(out, folder.path() / "run");
  CHECK(run.status == 2);
  CHECK_THAT(run.err, ContainsSubstring("its shards are incomplete"));
  const TrainRun on_a_directory = train_on(folder.path(), folder.path() / "run");
  CHECK(on_a_directory.status == 2);
  CHECK_THAT(on_a_directory.err,
             ContainsSubstring("is a directory without the manifest of token shards"));
}

TEST_CASE("tokenize: a tokenizer that was learnt encodes its text in fewer tokens", "[e2e]") {
  const test::TempDir folder;
  const std::string data = (folder.path() / "a.jsonl").string();
  const std::string learnt = (folder.path() / "learnt").string();
  write_json_lines(data, 0, 200);
  const Words command{"tokenize", "--train", "--vocab_size", "280", "--output_dir", learnt, data};
  const test::Outcome outcome = run_command(command);
  CAPTURE(outcome.err);
  REQUIRE(outcome.status == 0);
  CHECK_THAT(outcome.out, ContainsSubstring("a tokenizer of 280 tokens"));
  CHECK_THAT(run_command(command).err,
             ContainsSubstring("contains a tokenizer; pass --overwrite_output_dir"));
  const test::Outcome tokens = run_command(
      {"tokenize", "--tokenizer", learnt, "--output_dir", (folder.path() / "out").string(), data});
  CAPTURE(tokens.err);
  CHECK(tokens.status == 0);
  std::int64_t count = 0;
  REQUIRE(std::sscanf(tokens.out.substr(tokens.out.find(": ")).c_str(), ": %ld", &count) == 1);
  CHECK(count > 200);
  CHECK(count < 200 * 20);
}
