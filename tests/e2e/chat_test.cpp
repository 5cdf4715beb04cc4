// dstrain chat: conversations through a pipe against the same ones through generate.
#include <csignal>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "launcher/process/pipes.h"
#include "tests/e2e/fake_hosts.h"
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

constexpr int end_of_turn = 1002;  // <|im_end|> of the tokenizer

/// A golden model with a tokenizer and a template whose answers end at <|im_end|>.
class ChatModel {
 public:
  explicit ChatModel(const std::string& chat_template = "chatml.jinja", int positions = 1024) {
    const fs::path golden = test::golden_folder;
    fs::create_directory(directory());
    fs::copy(golden / "choices/llama/model.safetensors", directory());
    fs::copy(golden / "tokenizers/qwen2/tokenizer.json", directory());
    if (!chat_template.empty()) {
      fs::copy_file(golden / "chat_templates" / chat_template, directory() / "chat_template.jinja");
    }
    json config = test::read_json(golden / "choices/llama/config.json");
    config["eos_token_id"] = end_of_turn;
    config["max_position_embeddings"] = positions;
    std::ofstream(directory() / "config.json") << config;
    std::ofstream(directory() / "tokenizer_config.json") << json{{"eos_token", "<|im_end|>"}};
  }

  [[nodiscard]] Words command(const Words& launch_options, const Words& more) const {
    Words words = launch_options;
    words.insert(words.end(), {"chat", "--model_name_or_path", directory().string()});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  /// What the person writes is in a file.
  [[nodiscard]] Outcome chat(const std::string& input,
                             const Words& more = {},
                             const Words& launch_options = {}) const {
    return run(command(launch_options, more), input);
  }
  [[nodiscard]] Outcome run(const Words& words, const std::string& input) const {
    const fs::path path = folder_.path() / "input";
    std::ofstream(path) << input;
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    test::Launch::Options options;
    options.input = file.get();
    return test::run_command(words, options);
  }
  /// The same with an answer to each message.
  [[nodiscard]] std::string answers(const std::string& input,
                                    const Words& more = {},
                                    const Words& launch_options = {}) const {
    const Outcome outcome = chat(input, more, launch_options);
    CAPTURE(outcome.err);
    REQUIRE(outcome.status == 0);
    return outcome.out;
  }
  /// The answer of generate.
  [[nodiscard]] std::string generate(const json& messages, const Words& more = {}) const {
    const fs::path path = folder_.path() / "messages.jsonl";
    std::ofstream(path) << json{{"messages", messages}} << "\n";
    Words words{"generate", "--model_name_or_path", directory().string(), "--prompt_file",
                path.string()};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = test::run_command(words);
    CAPTURE(outcome.err);
    REQUIRE(outcome.status == 0);
    return json::parse(outcome.out).at("completion");
  }

  [[nodiscard]] fs::path directory() const { return folder_.path() / "model"; }
  [[nodiscard]] fs::path folder() const { return folder_.path(); }

 private:
  test::TempDir folder_;
};

json message(const char* role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

const Words short_answers{"--max_new_tokens", "12"};

/// A chat whose person writes now and then.
class LiveChat {
 public:
  LiveChat(const ChatModel& model, const Words& more, const Words& launch_options = {})
      : launch_(model.command(launch_options, more), options()) {
    pipe_.read.reset();
  }
  void write(const std::string& text) const {
    REQUIRE(::write(pipe_.write.get(), text.data(), text.size()) == std::ssize(text));
  }
  void close() { pipe_.write.reset(); }
  test::Launch& launch() { return launch_; }

 private:
  [[nodiscard]] test::Launch::Options options() const {
    test::Launch::Options options;
    options.input = pipe_.read.get();
    return options;
  }
  launcher::PipeEnds pipe_ = launcher::make_pipe();
  test::Launch launch_;
};

}  // namespace

TEST_CASE("chat: answers are those of generate for the same messages", "[e2e][chat]") {
  const ChatModel model;
  const Words sampled{"--max_new_tokens", "12", "--do_sample", "--seed", "7"};
  json messages{message("user", "Hello")};
  const std::string first = model.generate(messages, short_answers);
  messages.push_back(message("assistant", first));
  messages.push_back(message("user", "Say more"));
  const std::string second = model.generate(messages, short_answers);
  CHECK(first != second);
  CHECK(model.answers("Hello\nSay more\n", short_answers) == first + "\n" + second + "\n");
  CHECK(model.answers("Hello\n\n \r\nSay more", short_answers) == first + "\n" + second + "\n");
  const json alone{message("user", "Hello")};
  CHECK(model.answers("Hello\n", sampled) == model.generate(alone, sampled) + "\n");
}

TEST_CASE("chat: reset forgets all but the system message", "[e2e][chat]") {
  const ChatModel model;
  const Words told{"--max_new_tokens", "12", "--system", "You rhyme"};
  const std::string alone =
      model.generate({message("system", "You rhyme"), message("user", "Again")}, short_answers);
  const std::string behind = model.answers("Hello\nAgain\n", told);
  CHECK_FALSE(behind.ends_with(alone + "\n"));
  CHECK(model.answers("Hello\n/reset\nAgain\n", told).ends_with("\n" + alone + "\n"));
}

TEST_CASE("chat: exit and the end of the input end it", "[e2e][chat]") {
  const ChatModel model;
  CHECK(model.answers("/exit\nHello\n").empty());
  CHECK(model.answers("").empty());
  const Outcome outcome = model.chat("Hello\n/exit\nAgain\n", short_answers);
  CHECK(outcome.status == 0);
  CHECK(outcome.out == model.answers("Hello\n", short_answers));
  CHECK_THAT(outcome.err, ContainsSubstring("greedy decoding, at most 12 new tokens of 1024"));
}

TEST_CASE("chat: ranks that shard the weights give the same answers", "[e2e][chat]") {
  const ChatModel model;
  const std::string input = "Hello\nSay more\n/reset\nAgain\n";
  const std::string expected = model.answers(input, short_answers);
  const fs::path config = model.folder() / "zero3.json";
  std::ofstream(config) << json{{"zero_optimization", {{"stage", 3}}}};
  const Words two_ranks{"--num_gpus", "2", "--device", "cpu"};
  CHECK(model.answers(input, short_answers, two_ranks) == expected);
  Words sharded = short_answers;
  sharded.insert(sharded.end(), {"--deepspeed", config.string()});
  CHECK(model.answers(input, sharded, two_ranks) == expected);
}

TEST_CASE("chat: a rank on another host reads the lines that are written here", "[e2e][chat]") {
  const ChatModel model;
  const test::FakeHosts hosts("first slots=1\nsecond slots=1\n");
  const std::string input = "Hello\n" + std::string(10'000, ' ') + "\nSay more\n";
  const Words words = hosts.words(model.command({"--device", "cpu"}, short_answers));
  const Outcome outcome = model.run(words, input);
  CAPTURE(outcome.err);
  CHECK(outcome.status == 0);
  CHECK(outcome.out == model.answers("Hello\nSay more\n", short_answers));
}

TEST_CASE("chat: an interrupt stops the answer and not the conversation", "[e2e][chat]") {
  // More than there is time for.
  const ChatModel model("chatml.jinja", 1 << 18);
  const Words endless{"--max_length", "262144", "--max_new_tokens", "262144", "--ignore_eos"};
  const Words ranks = GENERATE(Words{}, Words{"--num_gpus", "2", "--device", "cpu"});
  LiveChat chat(model, endless, ranks);
  test::Launch& launch = chat.launch();
  const auto grows = [&](std::size_t from) {
    return launch.wait_until([&] { return launch.out().size() > from; });
  };
  chat.write("Hello\n");
  CHECK(grows(0));
  launch.signal(SIGINT);
  chat.write("/reset\n");
  CHECK(launch.wait_for_error("a new conversation begins"));
  const std::size_t stopped = launch.out().size();
  CHECK(launch.out().ends_with("\n"));
  chat.write("Again\n");
  CHECK(grows(stopped));
  launch.signal(SIGINT);
  chat.write("/exit\n");
  CHECK(launch.wait() == 0);
}

TEST_CASE("chat: an interrupt without an answer ends the program", "[e2e][chat]") {
  const ChatModel model;
  LiveChat chat(model, short_answers);
  chat.write("/reset\n");
  REQUIRE(chat.launch().wait_for_error("a new conversation begins"));
  // Whether it waits already is not known: the first may be for what it does.
  CHECK(chat.launch().interrupt_until_gone());
  CHECK(chat.launch().wait() == 128 + SIGINT);
}

TEST_CASE("chat: a full conversation says what to do", "[e2e][chat]") {
  const ChatModel model;
  const Outcome cut = model.chat("Hello\nAgain\n/reset\nHello\n", {"--max_length", "40"});
  CHECK(cut.status == 0);
  CHECK_THAT(cut.err, ContainsSubstring("the conversation is full: 40 of 40 tokens; /reset begins "
                                        "a new one, and a larger --max_length makes room"));
  const std::string answer = model.chat("Hello\n", {"--max_length", "40"}).out;
  CHECK(cut.out == answer + answer);
  const Outcome refused = model.chat("", {"--max_length", "2000"});
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, ContainsSubstring("--max_length 2000: the model has 1024 positions"));
}

TEST_CASE("chat: a model that cannot talk is refused before it starts", "[e2e][chat]") {
  const Outcome bare = ChatModel("").chat("Hello\n");
  CHECK(bare.status == 2);
  CHECK(bare.out.empty());
  CHECK_THAT(bare.err, ContainsSubstring("chat template") &&
                           ContainsSubstring("use dstrain generate, whose --prompt needs no"));
  const Outcome system = ChatModel("gemma.jinja").chat("Hello\n", {"--system", "You rhyme"});
  CHECK(system.status == 2);
  CHECK_THAT(system.err, ContainsSubstring("error: chat: "));
}
