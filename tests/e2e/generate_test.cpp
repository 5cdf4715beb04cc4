// dstrain generate: where a text ends, how its tokens are chosen, and where the prompt is from.
#include <fmt/format.h>

#include "tests/e2e/generate_run.h"
#include "tests/support/catch.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using test::Outcome;
using test::Words;
namespace fs = std::filesystem;

namespace {

const std::string prompt = "AB";

/// A copy of a golden model, whose ids are printed as bytes, with what its files say of generation;
/// null: nothing.
class GivenModel {
 public:
  explicit GivenModel(const json& generation_config = nullptr,
                      const json& end = nullptr,
                      const char* model = "model")
      : copy_(model, generation_config) {
    copy_.set({{"eos_token_id", end}});
  }

  [[nodiscard]] Words command(const Words& more) const {
    return test::joined({"generate", "--model_name_or_path", directory(), "--tokenizer", "byte"},
                        more);
  }
  [[nodiscard]] test::TextRun generate(const Words& more = {}) const {
    return {test::run_command(command(test::joined(more, {"--prompt", prompt})))};
  }
  [[nodiscard]] json text(const Words& more = {}) const { return generate(more).text(); }
  /// The new tokens.
  [[nodiscard]] std::vector<int> completion(const Words& more = {}) const {
    return text(more).at("completion_ids");
  }

  [[nodiscard]] fs::path directory() const { return copy_.directory(); }

 private:
  test::ModelCopy copy_;
};

bool has(const std::vector<int>& ids, int id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

TEST_CASE("Generate: each end token of the model's files ends the text", "[e2e][generate]") {
  const Words length{"--max_new_tokens", "20"};
  const json endless = GivenModel().text(length);
  CHECK(endless.at("finish_reason") == "length");
  const std::vector<int> ids = endless.at("completion_ids");
  REQUIRE(ids.size() == 20);
  // The last token that is new where it stands.
  std::ptrdiff_t at = 0;
  for (std::ptrdiff_t i = 1; i < std::ssize(ids); ++i) {
    if (std::find(ids.begin(), ids.begin() + i, ids[static_cast<std::size_t>(i)]) ==
        ids.begin() + i) {
      at = i;
    }
  }
  REQUIRE(at > 0);
  const int end = ids[static_cast<std::size_t>(at)];
  const int never = 159;
  REQUIRE_FALSE(has(ids, never));
  const std::vector<int> ended(ids.begin(), ids.begin() + at + 1);
  const auto check_ends = [&](const GivenModel& model) {
    const json text = model.text(length);
    CHECK(text.at("completion_ids") == ended);
    CHECK(text.at("finish_reason") == "eos");
    CHECK(model.text(test::joined(length, {"--ignore_eos"})) == endless);
    const auto later = std::to_string(at + 2);
    CHECK(model.completion(test::joined(length, {"--min_new_tokens", later})).size() >=
          ended.size() + 1);
  };
  check_ends(GivenModel(nullptr, end));
  check_ends(GivenModel(nullptr, {never, end}));
  check_ends(GivenModel(json{{"eos_token_id", {never, end}}}));
  check_ends(GivenModel(json{{"eos_token_id", {never, end}}}, never));
  // Those of both files count.
  check_ends(GivenModel(json{{"eos_token_id", never}}, end));
  check_ends(GivenModel(json{{"do_sample", false}}, end));
  check_ends(GivenModel(json{{"eos_token_id", end}}, never));
}

TEST_CASE("Generate: min_new_tokens of the model holds end tokens back", "[e2e][generate]") {
  const std::vector<int> endless = GivenModel().completion();
  const json ends{{"eos_token_id", endless.front()}, {"min_new_tokens", 5}};
  const std::vector<int> ids = GivenModel(ends).completion();
  REQUIRE(ids.size() >= 5);
  for (std::size_t i = 0; i < 5; ++i) CHECK(ids[i] != endless.front());
  CHECK(GivenModel(ends).completion({"--min_new_tokens", "0"}).size() == 1);
}

TEST_CASE("Generate: bytes end where generation_config.json says so", "[e2e][generate]") {
  const Words length{"--max_new_tokens", "5"};
  const auto of_bytes = [&](const json& generation_config, const json& end) {
    return GivenModel(generation_config, end, "byte_model").completion(length);
  };
  const std::vector<int> endless = of_bytes(nullptr, nullptr);
  REQUIRE(endless.size() == 5);
  const int first = endless.front();
  CHECK(of_bytes(json{{"eos_token_id", first}}, nullptr) == std::vector<int>{first});
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

TEST_CASE("Generate: a text ends at the model's positions", "[e2e][generate]") {
  const GivenModel model;
  const auto run = [&](const char* tokens) {
    return model.generate({"--max_new_tokens", tokens});
  };
  const test::TextRun longer = run("40");
  CHECK_THAT(longer.err,
             ContainsSubstring("warning: the model has 32 positions: a text ends there"));
  // The last token is not run.
  const json text = longer.text();
  CHECK(text.at("completion_ids").size() == 31);
  CHECK(text.at("finish_reason") == "length");
  const test::TextRun full = run("31");
  CHECK_THAT(full.err, !ContainsSubstring("warning: the model has"));
  CHECK(full.text() == text);
  CHECK(run("9223372036854775807").text() == text);
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
    return test::run_command(test::joined({option, size}, model.command({"--prompt", prompt})));
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
                             ContainsSubstring("fewer --max_new_tokens"));
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
      {nullptr, {}, "greedy decoding, at most 20 new tokens; 1 text in f32 on 1 rank, a cache of"},
      {nullptr, {"--seed", "3"}, "greedy decoding"},
      {nullptr,
       {"--do_sample"},
       "sampling with temperature 1, top_k 50, top_p 1, seed 42, at most 20 new tokens"},
      {nullptr,
       {"--do_sample", "true", "--top_k", "0", "--seed", "3", "--min_p", "0.1"},
       "sampling with temperature 1, top_k 0, top_p 1, min_p 0.1, seed 3"},
      {sampled, {}, "sampling with temperature 0.7, top_k 50, top_p 0.8, seed 42"},
      {sampled,
       {"--temperature", "2", "--top_p", "0.5", "--top_k", "7"},
       "sampling with temperature 2, top_k 7, top_p 0.5, seed 42"},
      {sampled, {"--do_sample", "false"}, "greedy decoding"},
      {sampled, {"--do_sample=0"}, "greedy decoding"},
      {json{{"repetition_penalty", 1.1}}, {}, "greedy decoding, repetition_penalty 1.1, at most"},
      {json{{"repetition_penalty", 1.1}},
       {"--repetition_penalty", "1"},
       "greedy decoding, at most"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.config, row.typed);
    const Outcome outcome = GivenModel(row.config).generate(row.typed);
    CHECK(outcome.status == 0);
    CHECK_THAT(outcome.err, ContainsSubstring(row.mode));
    CHECK_THAT(outcome.err, !ContainsSubstring("ignored"));
  }
  const Words few{"--max_new_tokens", "8"};
  CHECK(GivenModel(sampled).text({"--do_sample", "false", "--max_new_tokens", "8"}) ==
        GivenModel().text(few));
  const GivenModel draws(sampled);
  CHECK(draws.text(few) == draws.text(few));
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
      {nullptr, {"--do_sample", "perhaps"}, "--do_sample"},
      {nullptr, {"--num_return_sequences", "2"}, "greedy decoding gives the same text each time"},
      {nullptr, {"--length_penalty", "2"}, "--length_penalty: no effect without beams"},
      {nullptr, {"--num_beams", "2", "--do_sample"}, "beam search that samples is not implemented"},
      {nullptr, {"--stop", ""}, "--stop is empty"}};
  for (const Row& row : rows) {
    CAPTURE(row.config, row.typed);
    const Outcome outcome = GivenModel(row.config).generate(row.typed);
    CHECK(outcome.status == 2);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, ContainsSubstring(row.message));
  }
  const Outcome warned = GivenModel(json{{"no_repeat_ngram_size", 3}, {"min_length", 4}})
                             .generate({"--max_new_tokens", "1"});
  CHECK(warned.status == 0);
  CHECK_THAT(warned.err, ContainsSubstring("generation_config.json: generate decodes without ") &&

                             ContainsSubstring("no_repeat_ngram_size 3") &&
                             ContainsSubstring("min_length 4"));
}

TEST_CASE("Generate: the prompt - is read from stdin", "[e2e][generate]") {
  const GivenModel model;
  const Words length{"--max_new_tokens", "3"};
  const std::string expected = model.generate(length).out;
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
      CHECK(outcome.out == expected);
    }
    const Outcome empty = piped(program, "\\n", model.command({"--prompt=-"}));
    CHECK(empty.status == 2);
    CHECK_THAT(empty.err, ContainsSubstring("--prompt - is empty, and the tokenizer has no token "
                                            "that begins a text; give some text"));
    Words of_directory = model.command({"--prompt", "-"});
    of_directory.insert(of_directory.begin(), {"/bin/sh", "-c", R"("$0" "$@" < /)", program});
    const Outcome refused = test::run_command(of_directory);
    CHECK(refused.status == 2);
    CHECK_THAT(refused.err, ContainsSubstring("cannot read stdin: Is a directory"));
  }
  // All lines are one prompt, and it may stand beside others.
  const test::TextRun two{
      piped(DSTRAIN_PROGRAM, "A\\nB\\n",
            model.command({"--prompt", "-", "--prompt", "A\nB", "--max_new_tokens", "1"}))};
  REQUIRE(two.texts().size() == 2);
  CHECK(two.texts()[0] == two.texts()[1]);
  // One that no command line could hold arrives.
  const Outcome large = test::run_command(
      {"/bin/sh", "-c", R"(head -c 200000 /dev/zero | tr '\\0' A | "$0" "$@")", DSTRAIN_PROGRAM,
       "generate", "--model_name_or_path", model.directory().string(), "--tokenizer", "byte",
       "--prompt", "-", "--max_new_tokens", "1"});
  CHECK(large.status == 2);
  CHECK_THAT(large.err,
             ContainsSubstring("--prompt -: 200000 tokens, and the model has 32 positions"));
}
