#include "runtime/data/choice_questions.h"

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "runtime/base/label.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_tree.h"

namespace dstrain::test {
namespace {

using data::ChoiceQuestions;
using nlohmann::json;
using Ids = std::vector<std::int32_t>;
namespace fs = std::filesystem;

constexpr std::int32_t none = ignored_label;

class QuestionFile {
 public:
  explicit QuestionFile(const std::string& text) { std::ofstream(path()) << text; }
  [[nodiscard]] std::string path() const { return (folder_.path() / "q.jsonl").string(); }
  [[nodiscard]] ChoiceQuestions open(data::ChoiceOptions options = {}) const {
    if (options.vocabulary == 0) options.vocabulary = 256;
    if (options.tokens_max == 0) options.tokens_max = 8;
    options.sources_max = 4;
    return {path(), *data::make_encoder("byte"), options};
  }

 private:
  TempDir folder_;
};

TEST_CASE("ChoiceQuestions: the labels of a choice are its tokens behind the query",
          "[data][choices]") {
  const QuestionFile file(R"({"query": "ab ", "choices": ["c", "de"], "gold": 1})");
  const ChoiceQuestions questions = file.open();
  REQUIRE(questions.sequences().size() == 2);
  CHECK(questions.sequences()[0].tokens == Ids{'a', 'b', ' '});
  CHECK(questions.sequences()[0].labels == Ids{none, ' ', 'c'});
  CHECK(questions.sequences()[1].tokens == Ids{'a', 'b', ' ', 'd'});
  CHECK(questions.sequences()[1].labels == Ids{none, ' ', 'd', 'e'});
  REQUIRE(questions.questions().size() == 1);
  CHECK(questions.questions()[0].gold == 1);
  CHECK(questions.questions()[0].choice_bytes == std::vector<std::int64_t>{1, 2});
  CHECK(questions.shortened() == 0);
}

TEST_CASE("ChoiceQuestions: a long query loses its beginning", "[data][choices]") {
  const QuestionFile file(R"({"query": "abcdefgh", "choices": ["xy", "z"], "gold": 0})");
  const ChoiceQuestions questions = file.open({.tokens_max = 4});
  CHECK(questions.sequences()[0].tokens == Ids{'f', 'g', 'h', 'x'});
  CHECK(questions.sequences()[0].labels == Ids{none, none, 'x', 'y'});
  CHECK(questions.shortened() == 2);
}

TEST_CASE("ChoiceQuestions: a query is the source of an encoder-decoder", "[data][choices]") {
  const QuestionFile file(R"({"query": "abcdef", "choices": ["xyz", "z"], "gold": 0})");
  const ChoiceQuestions questions = file.open({.pair_tokens = PairTokens{7, 0}});
  CHECK(questions.sequences()[0].source == Ids{'c', 'd', 'e', 'f'});
  CHECK(questions.sequences()[0].tokens == Ids{7, 'x', 'y'});
  CHECK(questions.sequences()[0].labels == Ids{'x', 'y', 'z'});
  CHECK(questions.shortened() == 2);
}

TEST_CASE("ChoiceQuestions: the labels are those of transformers", "[data][choices][golden]") {
  const std::string model = GENERATE("gpt2", "llama", "t5");
  CAPTURE(model);
  const fs::path folder = source_tree() / "tests/golden";
  const json made = json::parse(std::ifstream(folder / "choices" / model / "choices.json"));
  std::string lines;
  for (json question : made.at("questions")) {
    question["gold"] = 0;
    lines += question.dump() + "\n";
  }
  const QuestionFile file(lines);
  data::ChoiceOptions options{.vocabulary = 1 << 20, .tokens_max = 48, .sources_max = 1024};
  if (model == "t5") options.pair_tokens = PairTokens{};
  const auto encoder = data::make_encoder(
      (folder / "tokenizers" / made.at("tokenizer").get<std::string>()).string());
  const ChoiceQuestions questions(file.path(), *encoder, options);
  std::size_t sequence = 0;
  for (const json& question : made.at("questions")) {
    for (const json& expected : question.at("labels")) {
      Ids labels = questions.sequences().at(sequence++).labels;
      std::erase(labels, none);
      CHECK(labels == expected.get<Ids>());
    }
  }
  CHECK(sequence == questions.sequences().size());
}

TEST_CASE("ChoiceQuestions: the likeliest choice counts and the first among equals",
          "[data][choices]") {
  const QuestionFile file(
      "{\"query\": \"a\", \"choices\": [\"b\", \"cccc\"], \"gold\": 0}\n"
      "{\"query\": \"a\", \"choices\": [\"b\", \"cc\", \"c\"], \"gold\": 1}\n"
      "{\"query\": \"a\", \"choices\": [\"b\", \"c\"], \"gold\": 0}\n");
  const ChoiceQuestions questions = file.open();
  const data::ChoiceScores scores =
      data::score(questions, {-2.0, -4.0, -2.0, -1.5, -3.0, -1.0, -1.0});
  CHECK(scores.right == 3);
  CHECK(scores.right_per_byte == 2);
}

TEST_CASE("ChoiceQuestions: a file is known by its first record", "[data][choices]") {
  CHECK(data::holds_questions(QuestionFile(R"({"query": "a", "choices": 3})").path()));
  CHECK_FALSE(data::holds_questions(QuestionFile(R"({"text": "a"})").path()));
  CHECK_FALSE(data::holds_questions("/nonexistent.jsonl"));
  const auto message = [](const std::string& line) {
    return error_of([&] { static_cast<void>(QuestionFile(line).open()); });
  };
  CHECK_THAT(message(R"({"query": 1, "choices": []})"),
             Catch::Matchers::EndsWith("q.jsonl:1: query is number, not a text"));
  CHECK_THAT(message(R"({"query": "a", "choices": ["b", "c"]})"),
             Catch::Matchers::EndsWith("q.jsonl:1: gold is missing"));
}

}  // namespace
}  // namespace dstrain::test
