// dstrain generate: where a text ends, how its tokens are chosen, and where the prompt is from.
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/e2e/launch_process.h"
#include "tests/e2e/train_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using test::Outcome;
namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

const std::string prompt = "AB";

/// A copy of a golden model, whose ids are printed as bytes, with what its files say of generation;
/// null: nothing.
class GivenModel {
 public:
  explicit GivenModel(const json& generation_config = nullptr,
                      const json& end = nullptr,
                      const char* model = "model") {
    fs::copy(test::golden_folder / model, directory());
    json config = test::read_json(directory() / "config.json");
    config["eos_token_id"] = end;
    std::ofstream(directory() / "config.json") << config;
    if (generation_config.is_null()) return;
    std::ofstream(directory() / "generation_config.json") << generation_config;
  }

  [[nodiscard]] Words command(const Words& more) const {
    Words words{"generate", "--model_name_or_path", directory().string(), "--tokenizer", "byte"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  [[nodiscard]] Outcome generate(Words more = {}) const {
    more.insert(more.end(), {"--prompt", prompt});
    return test::run_command(command(more));
  }
  /// The new tokens.
  [[nodiscard]] std::string completion(const Words& more = {}) const {
    const Outcome outcome = generate(more);
    CAPTURE(outcome.err);
    REQUIRE(outcome.status == 0);
    REQUIRE(outcome.out.starts_with(prompt));
    return outcome.out.substr(prompt.size(), outcome.out.size() - prompt.size() - 1);
  }

  [[nodiscard]] fs::path directory() const { return folder_.path() / "model"; }

 private:
  test::TempDir folder_;
};

int id_of(char byte) {
  return static_cast<unsigned char>(byte);
}

}  // namespace

TEST_CASE("Generate: each end token of the model's files ends the text", "[e2e][generate]") {
  const Words length{"--max_new_tokens", "20"};
  const std::string endless = GivenModel().completion(length);
  REQUIRE(endless.size() == 20);
  // The last token that is new where it stands.
  std::size_t at = 0;
  for (std::size_t i = 1; i < endless.size(); ++i) {
    if (endless.find(endless[i]) == i) at = i;
  }
  REQUIRE(at > 0);
  const int end = id_of(endless[at]);
  const int never = 159;
  REQUIRE(endless.find(static_cast<char>(never)) == std::string::npos);
  const std::string ended = endless.substr(0, at + 1);
  CHECK(GivenModel(nullptr, end).completion(length) == ended);
  CHECK(GivenModel(nullptr, {never, end}).completion(length) == ended);
  CHECK(GivenModel(json{{"eos_token_id", {never, end}}}).completion(length) == ended);
  CHECK(GivenModel(json{{"eos_token_id", {never, end}}}, never).completion(length) == ended);
  // generation_config.json alone counts where there is one.
  CHECK(GivenModel(json{{"eos_token_id", never}}, end).completion(length) == endless);
  CHECK(GivenModel(json{{"do_sample", false}}, end).completion(length) == endless);
}

TEST_CASE("Generate: bytes end where generation_config.json says so", "[e2e][generate]") {
  const Words length{"--max_new_tokens", "5"};
  const auto of_bytes = [&](const json& generation_config, const json& end) {
    return GivenModel(generation_config, end, "byte_model").completion(length);
  };
  const std::string endless = of_bytes(nullptr, nullptr);
  REQUIRE_FALSE(endless.empty());
  const int first = id_of(endless.front());
  CHECK(of_bytes(json{{"eos_token_id", first}}, nullptr) == endless.substr(0, 1));
  // In config.json it is of the vocabulary that the model had before.
  CHECK(of_bytes(nullptr, first) == endless);
}

TEST_CASE("Generate: lengths come from the options and then from the model", "[e2e][generate]") {
  CHECK(GivenModel().completion().size() == 20);
  CHECK(GivenModel(json{{"max_new_tokens", 4}}).completion().size() == 4);
  CHECK(GivenModel(json{{"max_new_tokens", 4}, {"max_length", 9}}).completion().size() == 4);
  CHECK(GivenModel(json{{"max_length", 9}}).completion().size() == 7);
  CHECK(GivenModel(json{{"max_length", 9}}).completion({"--max_new_tokens", "3"}).size() == 3);
  const Outcome full = GivenModel(json{{"max_length", 2}}).generate();
  CHECK(full.status == 2);
  CHECK_THAT(full.err, ContainsSubstring("generation_config.json: max_length 2 leaves no room for "
                                         "new tokens behind 2; pass --max_new_tokens"));
}

TEST_CASE("Generate: a text longer than the model's positions is told", "[e2e][generate]") {
  const auto err = [](const char* tokens) {
    return GivenModel().generate({"--max_new_tokens", tokens}).err;
  };
  CHECK_THAT(err("40"), ContainsSubstring("warning: the model has 32 positions: from there on it "
                                          "sees the last 32 tokens only"));
  CHECK_THAT(err("31"), !ContainsSubstring("warning: the model has"));
}

TEST_CASE("Generate: an end token outside the vocabulary is told", "[e2e][generate]") {
  const Outcome outcome = GivenModel(json{{"eos_token_id", {7, 123'456}}}).generate();
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.err, ContainsSubstring("generation_config.json: eos_token_id 123456 ends no "
                                            "text: the model has 160 tokens"));
  CHECK_THAT(GivenModel(json{{"eos_token_id", 7}}).generate().err,
             !ContainsSubstring("ends no text"));
}

TEST_CASE("Generate: a text that exceeds the memory is refused", "[e2e][generate]") {
  const GivenModel model;
  const auto generate = [&](const char* option, const std::string& size) {
    Words words = model.command({"--prompt", prompt});
    words.insert(words.begin(), {option, size});
    return test::run_command(words);
  };
  const Outcome host = generate("--host_memory", "64KiB");
  CHECK(host.status == 2);
  CHECK(host.out.empty());
  CHECK_THAT(host.err, ContainsSubstring("1 rank of this machine would need ") &&
                           ContainsSubstring("--host_memory allows 64.0 KiB"));
  const Outcome device = generate("--device_memory", "64KiB");
  CHECK(device.status == 2);
  CHECK_THAT(device.err, ContainsSubstring("the run needs ") &&
                             ContainsSubstring("--device_memory allows 64.0 KiB") &&
                             ContainsSubstring("fewer --max_new_tokens take less"));
  CHECK(generate("--device_memory", "1GiB").out == model.generate().out);
}

TEST_CASE("Generate: the mode is named and typed options override the model's", "[e2e][generate]") {
  const json sampled{{"do_sample", true}, {"temperature", 0.7}, {"top_p", 0.8}};
  struct Row {
    json config;
    Words typed;
    std::string mode;
  };
  const std::vector<Row> rows{
      {nullptr, {}, "greedy decoding, at most 20 new tokens"},
      {nullptr, {"--seed", "3"}, "greedy decoding"},
      {nullptr,
       {"--do_sample"},
       "sampling with temperature 1, top_k 50, top_p 1, seed 42, at most 20 new tokens"},
      {nullptr,
       {"--do_sample", "true", "--top_k", "0", "--seed", "3"},
       "sampling with temperature 1, top_k 0, top_p 1, seed 3"},
      {sampled, {}, "sampling with temperature 0.7, top_k 50, top_p 0.8, seed 42"},
      {sampled,
       {"--temperature", "2", "--top_p", "0.5", "--top_k", "7"},
       "sampling with temperature 2, top_k 7, top_p 0.5, seed 42"},
      {sampled, {"--do_sample", "false"}, "greedy decoding"},
      {sampled, {"--do_sample=0"}, "greedy decoding"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.config, row.typed);
    const Outcome outcome = GivenModel(row.config).generate(row.typed);
    CHECK(outcome.status == 0);
    CHECK_THAT(outcome.err, ContainsSubstring(row.mode));
    CHECK_THAT(outcome.err, !ContainsSubstring("ignored"));
  }
  const Words few{"--max_new_tokens", "8"};
  CHECK(GivenModel(sampled).completion({"--do_sample", "false", "--max_new_tokens", "8"}) ==
        GivenModel().completion(few));
  const GivenModel draws(sampled);
  CHECK(draws.completion(few) == draws.completion(few));
}

TEST_CASE("Generate: options without effect are reported", "[e2e][generate]") {
  struct Row {
    json config;
    Words typed;
    std::string message;
  };
  const std::vector<Row> rows{
      {nullptr,
       {"--temperature", "0.7", "--top_p", "0.9"},
       "generate: --temperature, --top_p: no effect without sampling; add --do_sample, or leave "
       "them out"},
      {{{"do_sample", false}}, {"--top_k", "4"}, "generate: --top_k: no effect without sampling"},
      {{{"do_sample", true}},
       {"--do_sample", "false", "--top_k", "4"},
       "generate: --top_k: no effect without sampling"},
      {{{"do_sample", true}, {"temperature", 0}}, {}, "temperature must be above 0, got 0"},
      {nullptr, {"--do_sample", "--top_p", "1.5"}, "--top_p: must be from 0 to 1, got 1.5"},
      {nullptr, {"--do_sample", "--top_k", "-1"}, "--top_k: must be at least 0, got -1"},
      {nullptr, {"--do_sample", "--seed", "-1"}, "--seed: must be at least 0, got -1"},
      {nullptr, {"--do_sample=maybe"}, "--do_sample: must be true or false, got \"maybe\""},
      {nullptr, {"--do_sample", "perhaps"}, "--do_sample"}};
  for (const Row& row : rows) {
    CAPTURE(row.config, row.typed);
    const Outcome outcome = GivenModel(row.config).generate(row.typed);
    CHECK(outcome.status == 2);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, ContainsSubstring(row.message));
  }
  const Outcome warned = GivenModel(json{{"repetition_penalty", 1.1}, {"num_beams", 4}})
                             .generate({"--max_new_tokens", "1"});
  CHECK(warned.status == 0);
  CHECK_THAT(warned.err, ContainsSubstring("generation_config.json: generate decodes without "
                                           "num_beams 4, repetition_penalty 1.1"));
}

TEST_CASE("Generate: the prompt - is read from stdin", "[e2e][generate]") {
  const GivenModel model;
  const Words length{"--max_new_tokens", "3"};
  const std::string expected = prompt + model.completion(length);
  const auto piped = [&](const std::string& program, const std::string& input, Words words) {
    words.insert(words.begin(), {"-c", "printf '" + input + R"(' | "$0" "$@")", program});
    words.insert(words.begin(), "/bin/sh");
    return test::run_command(words);
  };
  const std::string rank = fs::path(DSTRAIN_PROGRAM).parent_path() / "dstraind";
  for (const std::string& program : {std::string(DSTRAIN_PROGRAM), rank}) {
    for (const std::string line_break : {"", "\\n", "\\r\\n"}) {
      const Words words = model.command({"--prompt", "-", "--max_new_tokens", "3"});
      const Outcome outcome = piped(program, prompt + line_break, words);
      CAPTURE(program, line_break, outcome.err);
      CHECK(outcome.status == 0);
      CHECK(outcome.out == expected + "\n");
    }
    const Outcome empty = piped(program, "\\n", model.command({"--prompt=-"}));
    CHECK(empty.status == 2);
    CHECK_THAT(empty.err, ContainsSubstring("generate: --prompt -: stdin holds no text"));
    Words of_directory = model.command({"--prompt", "-"});
    of_directory.insert(of_directory.begin(), {"/bin/sh", "-c", R"("$0" "$@" < /)", program});
    const Outcome refused = test::run_command(of_directory);
    CHECK(refused.status == 2);
    CHECK_THAT(refused.err, ContainsSubstring("cannot read stdin: Is a directory"));
  }
  // All lines are one prompt. One that no command line could hold arrives, too.
  const Outcome two =
      piped(DSTRAIN_PROGRAM, "A\\nB\\n", model.command({"--prompt", "-", "--max_new_tokens", "1"}));
  CHECK(two.out.starts_with("A\nB"));
  const Outcome large = test::run_command(
      {"/bin/sh", "-c", R"(head -c 200000 /dev/zero | tr '\\0' A | "$0" "$@")", DSTRAIN_PROGRAM,
       "generate", "--model_name_or_path", model.directory().string(), "--tokenizer", "byte",
       "--prompt", "-", "--max_new_tokens", "1"});
  CHECK(large.status == 0);
  CHECK(large.out.size() == 200'000 + 2);
}
