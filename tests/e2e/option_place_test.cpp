// Launch options that stand after the command, and what they are told.
#include <set>
#include <sstream>

#include "launcher/plan/options.h"
#include "runtime/config/schema.h"
#include "runtime/config/train_flags.h"
#include "tests/e2e/launch_process.h"
#include "tests/support/catch.h"

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

TEST_CASE("Option place: each launch option after a command is told where it stands", "[e2e]") {
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
    words.insert(words.end(), {name, "2"});
    Launch launch(words);
    CHECK(launch.wait() == 2);
    CAPTURE(launch.err());
    CHECK_THAT(
        launch.err(),
        ContainsSubstring(
            name + " is a launch option: it stands before the command, as in dstrain " + name) &&
            ContainsSubstring(" " + command.front() + " ..."));
  }
}

TEST_CASE("Option place: the remedy is the command that was meant", "[e2e]") {
  Launch launch({"train", "--num-gpus=2", "--config_name", "gpt2"});
  CHECK(launch.wait() == 2);
  CHECK_THAT(launch.err(), ContainsSubstring("as in dstrain --num-gpus=2 train ..."));
  // What a command takes as a value is none of ours.
  Launch prompt({"generate", "--model_name_or_path", "/nonexistent", "--prompt", "-H"});
  CHECK(prompt.wait() == 2);
  CHECK_THAT(prompt.err(),
             !ContainsSubstring("launch option") && ContainsSubstring("/nonexistent"));
}
