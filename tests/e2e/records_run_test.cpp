// Runs that read one conversation, or one question, from records of different layouts.
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "tests/e2e/train_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Matches;
using test::TrainRun;

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr int records = 24;

/// The records of a file: {0} in the pattern is the number of one.
Words records_like(std::string_view pattern) {
  Words lines;
  for (int i = 0; i < records; ++i) lines.push_back(fmt::format(fmt::runtime(pattern), i));
  return lines;
}

class Runs {
 public:
  Runs() {
    fs::create_directories(tokenizer());
    for (const char* const name : {"tokenizer.json", "tokenizer_config.json"}) {
      fs::copy_file(test::golden_folder / "tokenizers/gpt2" / name, tokenizer() / name);
    }
    write(tokenizer() / "chat_template.jinja",
          "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + "
          "message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}");
  }

  /// Trains on a text, which is the file `name`. Returns the losses, or the error.
  std::string losses(const std::string& name, const std::string& text, const Words& options = {}) {
    const fs::path file = folder_.path() / fmt::format("{}-{}", ++runs_, name);
    write(file, text);
    Words words{"--config_name",
                "gpt2",
                "--config_overrides",
                "vocab_size=1000,n_layer=1,n_embd=32,n_head=2,n_positions=128",
                "--per_device_train_batch_size",
                "2",
                "--max_steps",
                "3",
                "--train_file",
                file.string()};
    words.insert(words.end(), options.begin(), options.end());
    const TrainRun run = test::run_train(1, nullptr, fs::path(file.string() + ".out"), words,
                                         {{"DSTRAIN_CACHE", (folder_.path() / "cache").string()}});
    if (run.status != 0) return run.err;
    std::string losses;
    for (const nlohmann::json& line : run.metrics) losses += line.at("loss").dump() + " ";
    return losses;
  }
  [[nodiscard]] Words with_template() const { return {"--tokenizer", tokenizer().string()}; }

 private:
  [[nodiscard]] fs::path tokenizer() const { return folder_.path() / "tokenizer"; }
  static void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }

  test::TempDir folder_;
  int runs_ = 0;
};

std::string lines(std::string_view pattern) {
  return fmt::format("{}\n", fmt::join(records_like(pattern), "\n"));
}

}  // namespace

TEST_CASE("Records: a conversation has the same losses in every layout", "[e2e]") {
  Runs runs;
  const Words options = runs.with_template();
  const std::string messages = R"({{"messages": [{{"role": "system", "content": "Be brief."}}, )"
                               R"({{"role": "user", "content": "Question {0}?"}}, )"
                               R"({{"role": "assistant", "content": "Answer {0}."}}]}})";
  const std::string expected = runs.losses("messages.jsonl", lines(messages), options);
  REQUIRE_THAT(expected, Matches("([0-9.]+ ){3}"));
  const std::string array = fmt::format("[\n  {}\n]\n", fmt::join(records_like(messages), ",\n  "));
  CHECK(runs.losses("array.json", array, options) == expected);
  std::string spread = lines(messages);
  for (std::size_t at = 0; (at = spread.find(", {", at)) != std::string::npos; ++at) {
    spread.replace(at, 1, ",\n ");
  }
  CHECK(runs.losses("spread.json", spread, options) == expected);
  for (const char* const layout :
       {R"({{"system": "Be brief.", "conversations": [{{"from": "human", "value": "Question {0}?"}},
            {{"from": "gpt", "value": "Answer {0}."}}]}})",
        R"({{"conversation": [{{"system": "Be brief.", "input": "Question {0}?",
            "output": "Answer {0}."}}]}})",
        R"({{"prompt": [{{"role": "system", "content": "Be brief."}},
            {{"role": "user", "content": "Question {0}?"}}],
            "completion": [{{"role": "assistant", "content": "Answer {0}."}}]}})",
        R"({{"prompt": [{{"role": "System", "content": "Be brief."}},
            {{"role": "user", "content": "Question {0}?"}}], "completion": "Answer {0}."}})",
        R"({{"system": "Be brief.", "instruction": "Question {0}?", "input": "",
            "output": "Answer {0}.", "history": []}})",
        R"({{"system_prompt": "Be brief.", "question": "Question {0}?",
            "response": "Answer {0}."}})"}) {
    CAPTURE(layout);
    CHECK(runs.losses("layout.json", lines(layout), options) == expected);
  }
  Words named = options;
  named.insert(named.end(),
               {"--role_names", "narrator=system", "the pupil=user", "sage=assistant"});
  CHECK(runs.losses("named.jsonl",
                    lines(R"({{"messages": [{{"role": "narrator", "content": "Be brief."}}, )"
                          R"({{"role": "the pupil", "content": "Question {0}?"}}, )"
                          R"({{"role": "sage", "content": "Answer {0}."}}]}})"),
                    named) == expected);
}

TEST_CASE("Records: an answer of weight 0 is not learned", "[e2e]") {
  Runs runs;
  const auto chat = [&](std::string_view first, std::string_view second) {
    return runs.losses(
        "weights.jsonl",
        lines(
            fmt::format(R"({{{{"messages": [{{{{"role": "user", "content": "Question {{0}}?"}}}}, )"
                        R"({{{{"role": "assistant", "content": "No."{}}}}}, )"
                        R"({{{{"role": "user", "content": "Sure?"}}}}, )"
                        R"({{{{"role": "assistant", "content": "Answer {{0}}."{}}}}}]}}}})",
                        first, second)),
        runs.with_template());
  };
  const std::string all = chat("", "");
  const std::string last = chat(R"(, "weight": 0)", R"(, "weight": 1)");
  REQUIRE_THAT(last, Matches("([0-9.]+ ){3}"));
  CHECK(last != all);
  CHECK(chat(R"(, "train": false)", "") == last);
  CHECK_THAT(chat(R"(, "weight": 0)", R"(, "loss": false)"),
             ContainsSubstring("no conversation has an answer"));
}

TEST_CASE("Records: without a template a question with its answer is a prompt and completion",
          "[e2e]") {
  Runs runs;
  const std::string alpaca = runs.losses(
      "prompt.jsonl",
      lines(R"({{"prompt": "### Instruction:\nAdd.\n\n### Input:\n{0}\n\n### Response:\n", )"
            R"("completion": "Sum {0}"}})"));
  REQUIRE_THAT(alpaca, Matches("([0-9.]+ ){3}"));
  CHECK(runs.losses("alpaca.jsonl", lines(R"({{"instruction": "Add.", "input": "{0}", )"
                                          R"("output": "Sum {0}"}})")) == alpaca);
  const std::string plain =
      runs.losses("plain.jsonl", lines(R"({{"prompt": "It is {0}.\n\nWhy?\n", )"
                                       R"("completion": "So {0}"}})"));
  CHECK(runs.losses("dolly.jsonl", lines(R"({{"instruction": "Why?", "context": "It is {0}.", )"
                                         R"("response": "So {0}", "category": "qa"}})")) == plain);
  CHECK(runs.losses("question.jsonl", lines(R"({{"question": "Why?", "context": "It is {0}.", )"
                                            R"("answer": "So {0}"}})")) == plain);
  CHECK_THAT(runs.losses("system.jsonl", lines(R"({{"question": "Why?", "system": "S", )"
                                               R"("answer": "So {0}"}})")),
             ContainsSubstring(":1: a conversation: the byte tokenizer has no chat template"));
}

TEST_CASE("Records: a text under another key trains as under text", "[e2e]") {
  Runs runs;
  const std::string text = lines(R"({{"text": "Some text of number {0}, which goes on."}})");
  const std::string body =
      lines(R"({{"id": {0}, "body": "Some text of number {0}, which goes on."}})");
  const std::string expected = runs.losses("text.jsonl", text);
  REQUIRE_THAT(expected, Matches("([0-9.]+ ){3}"));
  CHECK(runs.losses("body.jsonl", body, {"--text_column", "body"}) == expected);
  CHECK_THAT(runs.losses("body.jsonl", body),
             ContainsSubstring("has the keys id, body; known are"));
  CHECK_THAT(runs.losses("text.jsonl", text, {"--text_column", "body"}),
             ContainsSubstring(":1: body is missing; --text_column names the key of the text, and "
                               "the record has text"));
  CHECK_THAT(runs.losses("text.jsonl", text, {"--role_names", "pupil:user"}),
             ContainsSubstring("--role_names: expected NAME=ROLE"));
}
