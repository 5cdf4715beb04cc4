// Runs that read text by the tokenizer of a Hugging Face directory.
#include <cmath>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "runtime/tokenizer/tokenizer.h"
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

const fs::path tokenizer_folder = test::golden_folder / "tokenizers/gpt2";

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

const Words small_model{"--config_name",
                        "gpt2",
                        "--config_overrides",
                        "vocab_size=1000,n_layer=2,n_embd=32,n_head=2,n_positions=64",
                        "--block_size",
                        "32",
                        "--per_device_train_batch_size",
                        "2",
                        "--max_steps",
                        "5"};

/// Some pages of text, emoji and special tokens among it.
std::string some_text() {
  std::string text;
  for (int line = 0; line < 60; ++line) {
    text += fmt::format("Line {} of a text about \u00e9t\u00e9 \U0001F600,\r\n  with the rest.\n",
                        line);
  }
  return text + "<|endoftext|>And on.\n";
}

/// llm.c's token file of u16 ids (magic 20240520, version 1).
void write_token_file(const fs::path& path, const std::vector<std::int32_t>& ids) {
  std::vector<std::int32_t> header(256);
  header[0] = 20240520;
  header[1] = 1;
  header[2] = static_cast<std::int32_t>(ids.size());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(header.data()), 1024);
  for (const std::int32_t id : ids) {
    const auto word = static_cast<std::uint16_t>(id);
    file.write(reinterpret_cast<const char*>(&word), sizeof word);
  }
}

std::vector<double> losses_of(const TrainRun& run) {
  std::vector<double> losses;
  for (const nlohmann::json& line : run.metrics) losses.push_back(line.at("loss"));
  return losses;
}

}  // namespace

TEST_CASE("Tokenizer: text trains like its tokens and the model keeps the tokenizer", "[e2e]") {
  const test::TempDir folder;
  const fs::path text = folder.path() / "text.txt";
  std::ofstream(text, std::ios::binary) << some_text();
  write_token_file(folder.path() / "text.bin",
                   tokenizer::Tokenizer::load(tokenizer_folder).encode(some_text()));
  const std::vector<launcher::EnvVar> cache{{"DSTRAIN_CACHE", (folder.path() / "cache").string()}};
  const Words asked{"--tokenizer", tokenizer_folder.string()};

  const TrainRun of_tokens = test::run_train(
      2, nullptr, folder.path() / "tokens",
      joined(small_model, {"--train_file", (folder.path() / "text.bin").string()}), cache);
  REQUIRE(of_tokens.status == 0);
  REQUIRE(of_tokens.metrics.size() == 5);
  for (const char* const time : {"first", "from the cache"}) {
    CAPTURE(time);
    const fs::path output = folder.path() / time;
    const TrainRun of_text =
        test::run_train(2, nullptr, output,
                        joined(joined(small_model, asked), {"--train_file", text.string()}), cache);
    CAPTURE(of_text.err);
    REQUIRE(of_text.status == 0);
    CHECK(losses_of(of_text) == losses_of(of_tokens));
    CHECK((test::read_bytes(output / "model.safetensors") ==
           test::read_bytes(folder.path() / "tokens/model.safetensors")));
    CHECK((test::read_bytes(output / "tokenizer.json") ==
           test::read_bytes(tokenizer_folder / "tokenizer.json")));
  }

  // From here on the model's own.
  const std::string model = (folder.path() / "first").string();
  // Evaluated alone, text has the loss of its tokens, and so has a mixture of both.
  const std::string tokens = (folder.path() / "text.bin").string();
  std::vector<double> held_out;
  for (const Words& files :
       {Words{tokens}, Words{text.string()}, Words{"0.5", text.string(), "0.5", tokens}}) {
    Words words{"--model_name_or_path",         model, "--do_eval",        "--block_size", "32",
                "--per_device_eval_batch_size", "2",   "--validation_file"};
    const fs::path output = folder.path() / fmt::format("evaluated{}", held_out.size());
    const TrainRun evaluated =
        test::run_train(2, nullptr, output, joined(std::move(words), files), cache);
    CAPTURE(evaluated.err);
    REQUIRE(evaluated.status == 0);
    held_out.push_back(test::read_json(output / "eval_results.json").at("eval_loss"));
  }
  CHECK(held_out[1] == held_out[0]);
  CHECK(std::abs(held_out[2] - held_out[0]) < 1e-6 * held_out[0]);
  const TrainRun further =
      test::run_train(1, nullptr, folder.path() / "further",
                      {"--model_name_or_path", model, "--train_file", text.string(), "--block_size",
                       "32", "--per_device_train_batch_size", "2", "--max_steps", "1"},
                      cache);
  CAPTURE(further.err);
  CHECK(further.status == 0);
  CHECK(further.metrics.at(0).at("loss") < 7);
  const test::Outcome said = run_command(
      {"generate", "--model_name_or_path", model, "--prompt", "Line 7", "--max_new_tokens", "8"});
  CAPTURE(said.err);
  CHECK(said.status == 0);
  CHECK(nlohmann::json::parse(said.out).at("completion_ids").size() == 8);
  CHECK_THAT(said.err, !ContainsSubstring("written as bytes"));
}

TEST_CASE("Tokenizer: tokens around texts that run_clm sets otherwise are told", "[e2e]") {
  struct Row {
    const char* tokenizer;
    const char* file;
    const char* told;  ///< empty: nothing
  };
  const auto [name, file, told] = GENERATE(
      Row{"llama3", "text.txt", "no special tokens around lines of a text (there around each)"},
      Row{"gpt2", "text.txt", ""},
      Row{"gpt2", "text.jsonl", "an end-of-text token behind each record (there none)"});
  const test::TempDir folder;
  std::ofstream(folder.path() / "text.txt") << some_text();
  {
    std::ofstream records(folder.path() / "text.jsonl");
    for (int i = 0; i < 60; ++i)
      records << R"({"text": "Line of a text about tokens."})"
              << "\n";
  }
  const TrainRun run = test::run_train(
      1, nullptr, folder.path() / "out",
      joined(small_model,
             {"--config_overrides", "vocab_size=1203,n_layer=1,n_embd=8,n_head=1,n_positions=64",
              "--max_steps", "1", "--train_file", (folder.path() / file).string(), "--tokenizer",
              (test::golden_folder / "tokenizers" / name).string()}),
      {{"DSTRAIN_CACHE", (folder.path() / "cache").string()}});
  CAPTURE(name, file, run.err);
  REQUIRE(run.status == 0);
  CHECK_THAT(run.err, ContainsSubstring(told));
  if (*told == 0) {
    CHECK_THAT(run.err,
               !ContainsSubstring("special tokens around") && !ContainsSubstring("behind each"));
  }
}

TEST_CASE("Tokenizer: invalid tokenizers are refused before ranks start", "[e2e]") {
  const test::TempDir folder;
  const fs::path text = folder.path() / "text.txt";
  std::ofstream(text) << some_text();
  const std::string none = (folder.path() / "nothing").string();
  const TrainRun refused =
      test::run_train(2, nullptr, folder.path() / "out",
                      joined(small_model, {"--train_file", text.string(), "--tokenizer", none}));
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, ContainsSubstring("--tokenizer " + none + ": no such directory"));
}

TEST_CASE("Tokenizer: a host without the plug-in is told what to install", "[e2e]") {
  const test::TempDir folder;
  const std::string copy = test::copy_program(folder.path()).string();
  const auto train = [&](const std::string& tokenizer) {
    return run_command(
        joined({"--num_gpus", "1", "--dry_run", "train", "--output_dir",
                (folder.path() / "out").string(), "--train_file", DSTRAIN_PROGRAM, "--tokenizer",
                tokenizer},
               small_model),
        {.env = {}, .directory = {}, .wrapper = {"/bin/sh", "-c", "exec " + copy + R"( "$@")"}});
  };
  const test::Outcome refused = train(tokenizer_folder.string());
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, ContainsSubstring("libdstrain_tokenizers.so") &&
                              ContainsSubstring("libpcre2-8-0 libsentencepiece0"));
  CHECK_THAT(train("byte").err, !ContainsSubstring("libdstrain_tokenizers.so"));
}
