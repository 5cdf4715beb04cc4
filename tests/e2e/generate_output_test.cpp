// dstrain generate: files of prompts and of texts, streams, and strings that end a text.
#include <algorithm>
#include <fstream>

#include <fmt/format.h>

#include "tests/e2e/generate_run.h"
#include "tests/support/catch.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using test::Words;
namespace fs = std::filesystem;

namespace {

std::string lines_of(const fs::path& file, std::size_t count) {
  std::string text;
  std::ifstream lines(file);
  std::string line;
  for (std::size_t i = 0; i < count && std::getline(lines, line); ++i) text += line + "\n";
  return text;
}

std::ptrdiff_t count_lines(const fs::path& file) {
  const std::string text = test::read_bytes(file);
  return std::count(text.begin(), text.end(), '\n');
}

/// The byte model, with prompts in a file, and the texts of a run that was not interrupted.
struct PromptedModel {
  PromptedModel(int prompts, const char* tokens) {
    std::vector<json> all;
    for (int i = 0; i < prompts; ++i) all.push_back({{"prompt", fmt::format("prompt {}", i)}});
    words = {"--prompt_file", test::write_prompts(model.folder() / "prompts.jsonl", all),
             "--do_sample", "--max_new_tokens", tokens};
  }
  [[nodiscard]] Words writing(const fs::path& file, const Words& more = {}) const {
    return test::joined(test::joined(words, {"--output_file", file}), more);
  }
  [[nodiscard]] fs::path file(const char* name) const { return model.folder() / name; }

  test::ModelCopy model{"byte_model"};
  Words words;
};

/// A toy GPT-2 with its tokenizer.
test::ModelCopy gpt2() {
  return test::ModelCopy("choices/gpt2");
}

}  // namespace

TEST_CASE("generate: an output file has the lines of stdout", "[e2e][generate]") {
  const PromptedModel given(9, "6");
  const std::string expected = test::generate(given.model.directory(), given.words).out;
  REQUIRE(std::count(expected.begin(), expected.end(), '\n') == 9);
  for (const int ranks : {1, 2, 3}) {
    const fs::path file = given.file(ranks == 1 ? "one" : ranks == 2 ? "two" : "three");
    const test::TextRun run =
        test::generate(test::cpu_ranks(ranks), given.model.directory(), given.writing(file));
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    CHECK(run.out.empty());
    CHECK(test::read_bytes(file) == expected);
  }
}

TEST_CASE("generate: a file that was interrupted is continued", "[e2e][generate]") {
  const PromptedModel given(400, "24");
  const fs::path whole = given.file("whole.jsonl");
  const int ranks = GENERATE(1, 2);
  const Words launch = test::cpu_ranks(ranks);
  REQUIRE(test::generate(launch, given.model.directory(), given.writing(whole)).status == 0);
  const fs::path file = given.file("texts.jsonl");
  const Words typed = given.writing(file, {"--batch_size", "2"});
  {
    test::Launch run(test::joined(
        launch,
        test::joined({"generate", "--model_name_or_path", given.model.directory()}, typed)));
    CHECK(run.wait_until([&] { return fs::exists(file) && count_lines(file) >= 3; }));
    run.signal_all(SIGKILL);
    run.wait();
    CHECK(run.nothing_left());
  }
  const auto count = static_cast<std::size_t>(count_lines(file));
  REQUIRE(count >= 3);
  CHECK(count < 400);
  CHECK(lines_of(file, count) == lines_of(whole, count));
  std::ofstream(file, std::ios::app) << R"({"completion":"half)";
  const test::TextRun resumed =
      test::generate(launch, given.model.directory(), test::joined(typed, {"--resume"}));
  CAPTURE(resumed.err);
  CHECK(resumed.status == 0);
  CHECK(test::read_bytes(file) == test::read_bytes(whole));
  // There is nothing left to do, and more prompts than before are.
  const test::TextRun again =
      test::generate(launch, given.model.directory(), test::joined(typed, {"--resume"}));
  CAPTURE(again.err);
  CHECK(again.status == 0);
  CHECK(test::read_bytes(file) == test::read_bytes(whole));
}

TEST_CASE("generate: any number of lines may be there already", "[e2e][generate]") {
  const PromptedModel given(5, "4");
  const int variants = GENERATE(1, 3);
  const Words many{"--num_return_sequences", std::to_string(variants)};
  const fs::path whole = given.file("whole.jsonl");
  REQUIRE(test::generate(given.model.directory(), given.writing(whole, many)).status == 0);
  const auto total = static_cast<std::size_t>(count_lines(whole));
  REQUIRE(total == static_cast<std::size_t>(5 * variants));
  const fs::path file = given.file("texts.jsonl");
  for (std::size_t count = 0; count <= total; count += variants == 1 ? 1 : 4) {
    CAPTURE(count);
    test::write_file(file, lines_of(whole, count) + (count % 2 == 0 ? "{\"compl" : ""));
    const int ranks = 1 + static_cast<int>(count % 3);
    const test::TextRun run = test::generate(test::cpu_ranks(ranks), given.model.directory(),
                                             given.writing(file, test::joined(many, {"--resume"})));
    CAPTURE(run.err);
    CHECK(run.status == 0);
    CHECK(test::read_bytes(file) == test::read_bytes(whole));
  }
}

TEST_CASE("generate: an output file that is not to be continued stays as it is",
          "[e2e][generate]") {
  const PromptedModel given(2, "3");
  const fs::path file = given.file("texts.jsonl");
  const std::string good = R"({"completion":"a","completion_ids":[97],"finish_reason":"eos"})";
  struct Row {
    std::string content;
    Words more;
    std::string message;
  };
  const std::vector<Row> rows{
      {good + "\n", {}, "texts.jsonl: exists; pass --resume to continue it, or remove it"},
      {"half", {}, "texts.jsonl: exists; pass --resume"},
      {"my notes\n", {"--resume"}, "texts.jsonl:1: not a line that generate has written"},
      {good + "\n{\"completion\": 3}\n", {"--resume"}, "texts.jsonl:2: not a line that"},
      {good + "\n" + good + "\n" + good + "\n",
       {"--resume"},
       "texts.jsonl: has 3 lines, and there are 2 texts to generate"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.content, row.more);
    test::write_file(file, row.content);
    for (const int ranks : {1, 2}) {
      const test::TextRun run = test::generate(test::cpu_ranks(ranks), given.model.directory(),
                                               given.writing(file, row.more));
      CHECK(run.status == 2);
      CHECK_THAT(run.err, ContainsSubstring(row.message));
      CHECK(test::read_bytes(file) == row.content);
    }
  }
  // A file without a whole line that is of somebody else.
  test::write_file(file, "my notes");
  const test::TextRun notes =
      test::generate(given.model.directory(), given.writing(file, {"--resume"}));
  CHECK(notes.status == 2);
  CHECK_THAT(notes.err, ContainsSubstring("texts.jsonl:1: not a line that generate has written"));
  CHECK(test::read_bytes(file) == "my notes");
  // An empty one is as none.
  test::write_file(file, "");
  CHECK(test::generate(given.model.directory(), given.writing(file)).status == 0);
  CHECK(count_lines(file) == 2);
  for (const char* const place : {"none/texts.jsonl", "/proc", "."}) {
    const test::TextRun run = test::generate(given.model.directory(), given.writing(place));
    CHECK(run.status == 2);
    CHECK_THAT(run.err, ContainsSubstring(fmt::format("--output_file {}: ", place)));
  }
}

TEST_CASE("generate: a string ends a text wherever tokens end", "[e2e][generate]") {
  const test::ModelCopy model = gpt2();
  const Words words{
      "--tokenizer", "tokenizers/gpt2", "--prompt",         "the", "--do_sample", "--seed",
      "4",           "--ignore_eos",    "--max_new_tokens", "30"};
  const json endless = test::generate(model.directory(), words).text();
  const std::string text = endless.at("completion");
  const std::vector<int> ids = endless.at("completion_ids");
  REQUIRE(ids.size() == 30);
  const auto stopped = [&](const std::vector<std::string>& stops) {
    Words more = words;
    for (const std::string& stop : stops) more = test::joined(more, {"--stop", stop});
    return test::generate(model.directory(), more).text();
  };
  int tried = 0;
  for (std::size_t begin = 0; begin + 8 < text.size() && tried < 12; begin += 5) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{3}, std::size_t{8}}) {
      const std::string stop = text.substr(begin, size);
      // Not parts of characters, nor what says that there is one.
      if (std::any_of(stop.begin(), stop.end(), [](char c) { return c < ' '; })) continue;
      ++tried;
      CAPTURE(stop);
      const json found = stopped({stop});
      const std::string written = found.at("completion");
      const std::vector<int> own = found.at("completion_ids");
      CHECK(found.at("finish_reason") == "stop");
      CHECK(text.starts_with(written));
      CHECK(std::equal(own.begin(), own.end(), ids.begin()));
      // The last token has completed it: without it, it is not there.
      CHECK(written.find(stop) == text.find(stop));
      Words shorter = words;
      shorter.back() = std::to_string(own.size() - 1);
      if (own.size() == 1) continue;
      const json before = test::generate(model.directory(), shorter).text();
      CHECK(before.at("completion").get<std::string>().find(stop) == std::string::npos);
      // Beside others, the first that is complete counts.
      CHECK(stopped({"not in it", stop, text.substr(text.size() - 4)}) == found);
    }
  }
  CHECK(tried >= 6);
  CHECK(stopped({"not in it"}) == endless);
}

TEST_CASE("generate: a string ends a text within which characters are tokens", "[e2e][generate]") {
  const test::ModelCopy model("byte_model");
  const Words words{"--prompt",         "a", "--do_sample", "--temperature", "4", "--top_k", "0",
                    "--max_new_tokens", "31"};
  const auto variants =
      test::generate(model.directory(), test::joined(words, {"--num_return_sequences", "40"}))
          .texts();
  // The first character of two bytes, of which it is the only one.
  int found = 0;
  for (std::size_t variant = 0; variant < variants.size(); ++variant) {
    const std::vector<int> ids = variants[variant].at("completion_ids");
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      if (ids[i] < 0xC2 || ids[i] > 0xDF || ids[i + 1] < 0x80 || ids[i + 1] > 0xBF) continue;
      const std::string stop{static_cast<char>(ids[i]), static_cast<char>(ids[i + 1])};
      const auto texts =
          test::generate(model.directory(),
                         test::joined(words, {"--num_return_sequences", std::to_string(variant + 1),
                                              "--stop", stop}))
              .texts();
      const json& text = texts.back();
      CAPTURE(variant, i);
      CHECK(text.at("finish_reason") == "stop");
      CHECK(text.at("completion_ids").size() == i + 2);
      CHECK(text.at("completion").get<std::string>().ends_with(stop));
      ++found;
      break;
    }
    if (found == 3) break;
  }
  CHECK(found == 3);
}

TEST_CASE("generate: an end token counts before a string that it would complete",
          "[e2e][generate]") {
  const test::ModelCopy model("byte_model");
  const Words words{"--prompt", "a", "--max_new_tokens", "6"};
  const std::vector<int> ids = test::generate(model.directory(), words).text()["completion_ids"];
  const test::ModelCopy ends("byte_model", {{"eos_token_id", ids.front()}});
  const json text = test::generate(ends.directory(), words).text();
  CHECK(text.at("finish_reason") == "eos");
  CHECK(text.at("completion_ids").size() == 1);
}

TEST_CASE("generate: an empty prompt is the token that begins texts", "[e2e][generate]") {
  const Words length{"--max_new_tokens", "4"};
  const auto of = [&](const std::string& name, const std::string& tokenizer, const Words& words) {
    return test::generate(
        test::ModelCopy("choices/" + name).directory(),
        test::joined(test::joined(length, words), {"--tokenizer", "tokenizers/" + tokenizer}));
  };
  const test::TempDir folder;
  const auto ids = [&](int id) {
    return test::write_prompts(folder.path() / "ids.jsonl", test::id_prompts({{id}}));
  };
  const auto first_of = [](const char* tokenizer, const std::string& token) {
    const json file =
        test::read_json(test::golden_folder / "tokenizers" / tokenizer / "tokenizer.json");
    for (const json& added : file.at("added_tokens")) {
      if (added.at("content") == token) return added.at("id").get<int>();
    }
    return -1;
  };
  CHECK(of("llama", "llama2", {"--prompt", ""}).text() ==
        of("llama", "llama2", {"--prompt_file", ids(first_of("llama2", "<s>"))}).text());
  CHECK(of("gpt2", "gpt2", {"--prompt", ""}).text() ==
        of("gpt2", "gpt2", {"--prompt_file", ids(first_of("gpt2", "<|endoftext|>"))}).text());
  CHECK(of("t5", "t5", {"--prompt", ""}).text() ==
        of("t5", "t5", {"--prompt_file", ids(first_of("t5", "</s>"))}).text());
  const test::TextRun none = test::generate("byte_model", {"--prompt", ""});
  CHECK(none.status == 2);
  CHECK_THAT(none.err, ContainsSubstring("--prompt is empty, and the tokenizer has no token that "
                                         "begins a text; give some text"));
}

TEST_CASE("generate: lines of prompts that cannot be used are refused", "[e2e][generate]") {
  const test::TempDir folder;
  const fs::path file = folder.path() / "p.jsonl";
  struct Row {
    std::string content;
    std::string message;
  };
  const std::string good = R"({"prompt": "a"})";
  const std::vector<Row> rows{
      {"", "p.jsonl"},
      {"\n\n", "p.jsonl: holds no prompt"},
      {good + "\n{\"prompt_ids\": [3, 256]}", "p.jsonl:2: token 256, and the model has 256"},
      {good + "\n{\"prompt_ids\": [-1]}", "p.jsonl:2: prompt_ids must be a list of token ids"},
      {R"({"prompt_ids": [99999999999]})", "p.jsonl:1: prompt_ids must be a list of token ids"},
      {R"({"prompt_ids": [1.5]})", "p.jsonl:1: prompt_ids must be a list of token ids"},
      {R"({"prompt_ids": []})", "p.jsonl:1: prompt_ids must be a list of token ids, at least one"},
      {R"({"prompt_ids": "a"})", "p.jsonl:1: prompt_ids must be a list of token ids"},
      {R"({"prompt": 3})", "p.jsonl:1: prompt must be a text"},
      {R"({"prompt": ""})", "p.jsonl:1 is empty, and the tokenizer has no token that begins"},
      {R"({"text": "a"})", "p.jsonl:1: no prompt; a line has one of prompt, messages or"},
      {R"({"prompt": "a", "prompt_ids": [1]})", "p.jsonl:1: prompt and prompt_ids; a line has one"},
      {R"({"messages": [{"role": "user", "content": "a"}]})",
       "p.jsonl:1: messages need a chat template"},
      {"a", "p.jsonl"},
      {good + "\n[1]\n", "p.jsonl"},
      {good + "\n{\"prompt\": \"a\n", "p.jsonl"},
      {R"({"prompt": ")" + std::string(33, 'a') + "\"}",
       "p.jsonl:1: 33 tokens, and the model has 32 positions"}};
  for (const Row& row : rows) {
    CAPTURE(row.content);
    test::write_file(file, row.content);
    const test::TextRun run = test::generate("byte_model", {"--prompt_file", file});
    CHECK(run.status == 2);
    CHECK(run.out.empty());
    CHECK_THAT(run.err, ContainsSubstring(row.message) && !ContainsSubstring("rank 0"));
  }
  const test::TextRun missing = test::generate("byte_model", {"--prompt_file", "none.jsonl"});
  CHECK(missing.status == 2);
  CHECK_THAT(missing.err, ContainsSubstring("none.jsonl"));
  // Other keys are somebody's own.
  const Words one{"--max_new_tokens", "2"};
  test::write_file(file, "{\"id\": 7, \"prompt\": \"a\", \"label\": [1]}\n");
  CHECK(test::generate("byte_model", test::joined(one, {"--prompt_file", file})).text() ==
        test::generate("byte_model", test::joined(one, {"--prompt", "a"})).text());
  // 32 tokens fill the positions: one more can be said.
  test::write_file(file, R"({"prompt": ")" + std::string(32, 'a') + "\"}");
  const json full = test::generate("byte_model", {"--prompt_file", file}).text();
  CHECK(full.at("completion_ids").size() == 1);
  CHECK(full.at("finish_reason") == "length");
}

TEST_CASE("generate: messages are written by the chat template", "[e2e][generate]") {
  const test::ModelCopy model("choices/gpt2");
  model.add_tokenizer("gpt2");
  test::write_file(model.directory() / "chat_template.jinja",
                   "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
                   "{% if add_generation_prompt %}assistant:{% endif %}");
  const fs::path file = model.folder() / "p.jsonl";
  const json user{{"role", "user"}, {"content", "the rank"}};
  test::write_prompts(file, {{{"messages", {user}}}, {{"prompt", "user: the rank\nassistant:"}}});
  const auto texts = test::generate(model.directory(), {"--prompt_file", file}).texts();
  REQUIRE(texts.size() == 2);
  CHECK(texts[0] == texts[1]);
}

TEST_CASE("generate: a text is shown as it grows", "[e2e][generate]") {
  const test::ModelCopy model = gpt2();
  const Words words{"--tokenizer", "tokenizers/gpt2", "--prompt", "the",
                    "--do_sample", "--seed",          "4"};
  const json text = test::generate(model.directory(), words).text();
  const std::string shown = text.at("completion").get<std::string>() + "\n";
  const Words streamed = test::joined(words, {"--stream"});
  CHECK(test::generate(model.directory(), streamed).out == shown);
  CHECK(test::generate(test::cpu_ranks(2), model.directory(), streamed).out == shown);
  const fs::path file = model.folder() / "texts.jsonl";
  const test::TextRun both =
      test::generate(model.directory(), test::joined(streamed, {"--output_file", file}));
  CHECK(both.out == shown);
  CHECK(test::read_json(file) == text);
  for (const Words& more :
       std::vector<Words>{{"--prompt", "two"}, {"--num_return_sequences", "2"}}) {
    const test::TextRun refused = test::generate(model.directory(), test::joined(streamed, more));
    CHECK(refused.status == 2);
    CHECK_THAT(refused.err, ContainsSubstring("--stream: is for one text; pass one --prompt"));
  }
}

TEST_CASE("generate: options that belong together are asked for", "[e2e][generate]") {
  struct Row {
    Words words;
    std::string message;
  };
  const std::vector<Row> rows{
      {{}, "generate: pass --prompt TEXT or --prompt_file FILE"},
      {{"--prompt", "a", "--prompt_file", "b"}, "--prompt and --prompt_file: pass one of them"},
      {{"--prompt", "-", "--prompt", "-"}, "--prompt -: stdin is read once"},
      {{"--prompt", "a", "--resume"}, "--resume: needs --output_file"},
      {{"--prompt", "a", "--resume", "--output_file", "b"}, "--resume: needs --prompt_file"},
      {{"--prompt", "a", "--batch_size", "0"}, "--batch_size"},
      {{"--prompt", "a", "--max_new_tokens", "0"}, "--max_new_tokens"},
      {{"--prompt", "a", "--max_lenght", "3"}, "unknown option --max_lenght"},
      {{"--prompt", "a", "--max_length", "3"}, "use --max_new_tokens"},
      {{"--prompt", "a", "--stop_strings", "3"}, "use --stop"},
      {{"--prompt", "a", "--quantization", "int8"}, "--quantization int8: not implemented"}};
  for (const Row& row : rows) {
    CAPTURE(row.words);
    const test::TextRun run = test::generate("byte_model", row.words);
    CHECK(run.status == 2);
    CHECK(run.out.empty());
    CHECK_THAT(run.err, ContainsSubstring(row.message));
  }
}
