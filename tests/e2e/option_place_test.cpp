// Launch options that stand after the command, and what they are told.
#include <fstream>
#include <set>
#include <sstream>

#include "launcher/plan/options.h"
#include "runtime/config/schema.h"
#include "runtime/config/train_flags.h"
#include "tests/e2e/launch_process.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::Launch;
using Words = std::vector<std::string>;

namespace {

/// Every name in the help of the launch options.
std::set<std::string> launch_option_names() {
  std::set<std::string> names;
  std::istringstream text(launcher::launch_options_help());
  for (std::string word; text >> word;) {
    std::istringstream parts(word);
    for (std::string name; std::getline(parts, name, ',');) {
      if (launcher::launch_option_words(std::vector<std::string>{name}) > 0) names.insert(name);
    }
  }
  return names;
}

std::set<std::string> train_option_names() {
  std::set<std::string> names;
  for (const config::FlagRow& row : config::train_flags()) {
    names.insert("--" + std::string(row.name));
    for (const auto alias : config::split_choices(row.aliases))
      names.insert("--" + std::string(alias));
  }
  return names;
}

}  // namespace

TEST_CASE("Option place: a launch option after a command is reported with its place", "[e2e]") {
  const std::set<std::string> own = train_option_names();
  const std::set<std::string> names = launch_option_names();
  CHECK(names.size() > 30);
  CHECK(names.contains("-H"));
  CHECK(names.contains("--num_accelerators"));
  const Words command = GENERATE(Words{"train", "--config_name", "gpt2"},
                                 Words{"generate", "--prompt", "a"}, Words{"bench", "comm"});
  for (const std::string& name : names) {
    if (name == "--help" || name == "-h" || name == "--version" || own.contains(name)) continue;
    Words words = command;
    words.insert(words.end(), {name, "w1"});
    Launch launch(words);
    CHECK(launch.wait() == 2);
    CAPTURE(launch.err());
    CHECK_THAT(
        launch.err(),
        ContainsSubstring(
            name + " is a launch option: write it before the command, as in dstrain " + name) &&
            ContainsSubstring(" " + command.front() + " ..."));
  }
}

TEST_CASE("Option place: the remedy is the intended command", "[e2e]") {
  Launch epochs({"train", "--config_name", "gpt2", "-e", "3"});
  CHECK(epochs.wait() == 2);
  CHECK_THAT(epochs.err(),
             ContainsSubstring("-e: unknown option; did you mean --num_train_epochs"));
  Launch launch({"train", "--num-gpus=2", "--config_name", "gpt2"});
  CHECK(launch.wait() == 2);
  CHECK_THAT(launch.err(), ContainsSubstring("as in dstrain --num-gpus=2 train ..."));
  // What a command takes as a value is none of ours.
  Launch prompt({"generate", "--model_name_or_path", "/nonexistent", "--prompt", "-H"});
  CHECK(prompt.wait() == 2);
  CHECK_THAT(prompt.err(),
             !ContainsSubstring("launch option") && ContainsSubstring("/nonexistent"));
}

TEST_CASE("Option place: words such as sft suggest the command train", "[e2e]") {
  const std::string word = GENERATE("sft", "finetune", "train_sft", "pretrain", "Training");
  Launch launch({word, "--config_name", "gpt2"});
  CHECK(launch.wait() == 2);
  CHECK_THAT(launch.err(), ContainsSubstring("is not a command; did you mean \"train\"?"));
}

TEST_CASE("Option place: the whole help is printed for --help-all too", "[e2e]") {
  Launch all({"--help-all"});
  Launch usual({"--help"});
  CHECK(all.wait() == 0);
  CHECK(usual.wait() == 0);
  CHECK(all.out() == usual.out());
  CHECK_THAT(all.out(), ContainsSubstring("--num_gpus"));
}

TEST_CASE("Option place: loss options that the records contradict are refused", "[e2e]") {
  const test::TempDir folder;
  const std::string pairs = (folder.path() / "pairs.JL").string();
  const std::string texts = (folder.path() / "texts.jsonl").string();
  std::ofstream(pairs) << R"({"prompt": "Say", "completion": " this"})"
                       << "\n";
  std::ofstream(texts) << R"({"text": "Say this"})"
                       << "\n";
  const auto train = [&](const std::string& file, const Words& wish) {
    Words words{"--dry_run",
                "--device",
                "cpu",
                "--num_gpus",
                "1",
                "train",
                "--config_name",
                "gpt2",
                "--config_overrides",
                "n_layer=1,n_head=1,n_embd=8,n_positions=16",
                "--output_dir",
                (folder.path() / "out").string(),
                "--max_steps",
                "1",
                "--train_file",
                file};
    words.insert(words.end(), wish.begin(), wish.end());
    Launch launch(words);
    const int status = launch.wait();
    return std::pair(status, launch.err());
  };
  for (const Words& wish : {Words{"--completion_only_loss", "False"}, Words{"--stage", "pt"}}) {
    const auto [status, told] = train(pairs, wish);
    CAPTURE(told);
    CHECK(status == 2);
    CHECK_THAT(told, ContainsSubstring("has prompts and completions, of which only the completions "
                                       "are learned; leave it out"));
    constexpr std::string_view remedy = "give the records as {\"text\": \"...\"}";
    CHECK_THAT(told, ContainsSubstring(std::string(remedy)));
    CHECK(told.find(remedy) == told.rfind(remedy));  // one rank tells it
    CHECK(train(texts, wish).first == 0);
  }
  CHECK(train(pairs, {"--completion_only_loss", "True"}).first == 0);
  CHECK(train(pairs, {"--assistant_only_loss", "False"}).first == 0);
  CHECK(train(pairs, {"--stage", "sft"}).first == 0);
}
