// The training commands of tutorials, without the program's name, as they were printed.
#include <fstream>
#include <map>

#include <nlohmann/json.hpp>

#include "tests/e2e/train_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
namespace fs = std::filesystem;
using Words = std::vector<std::string>;

namespace {

const fs::path source = DSTRAIN_SOURCE_DIR;

/// Quotes hold a word together, as in a shell.
Words split_words(const std::string& command) {
  Words words;
  std::string word;
  bool quoted = false;
  for (const char c : command + " ") {
    if (c == '"') quoted = !quoted;
    if (c == '"') continue;
    if (c != ' ' || quoted) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

/// What stands for the files and the parts that the tutorials leave to the reader.
class Replacements {
 public:
  explicit Replacements(const fs::path& folder) {
    const std::string text = (folder / "text.txt").string();
    std::ofstream(text) << std::string(40'000, 'a');
    const std::string output = (folder / "out").string();
    const auto published = [](const std::string& name) {
      return (source / "tests/config/published" / (name + ".json")).string();
    };
    words_ = {{"MODEL", {"--num_layers", "2", "--hidden_size", "64", "--num_attention_heads", "4"}},
              {"DATA", {"--train_file", text, "--validation_file", text, "--output_dir", output}},
              {"webtext", {text}},
              {"output_dir", {output}},
              {"ds_config.json", {published("zero3_auto")}},
              {"tests/deepspeed/ds_config_zero2.json", {published("zero2_auto")}},
              {"tests/deepspeed/ds_config_zero3.json", {published("zero3_auto")}},
              {"ds_zero_stage_1.config", {published("megatron_zero1")}},
              {"ds_zero_stage_2.config", {published("megatron_zero2")}},
              {"ds_zero_offload.config", {published("zero2_one_gpu")}}};
  }
  [[nodiscard]] Words operator()(const std::string& word) const {
    const auto found = words_.find(word);
    return found == words_.end() ? Words{word} : found->second;
  }

 private:
  std::map<std::string, Words> words_;
};

}  // namespace

TEST_CASE("Published commands: each option does something or is told", "[e2e][train]") {
  for (const nlohmann::json& row : test::read_json(source / "tests/e2e/published_commands.json")) {
    const test::TempDir folder;
    const Replacements replace(folder.path());
    // Some want more memory than the machine of a test has.
    Words command{"--num_gpus",    "2",    "--device",  "cpu",
                  "--host_memory", "1TiB", "--dry_run", "train"};
    for (const std::string& word : split_words(row.at("command"))) {
      for (std::string& each : replace(word)) command.push_back(std::move(each));
    }
    test::Launch launch(command);
    const int status = launch.wait();
    CAPTURE(row.at("command"), launch.err());
    CHECK(status == row.at("status"));
    CHECK(launch.err().find("unknown option") == std::string::npos);
    const std::string& told = status == 0 ? launch.out() : launch.err();
    for (const std::string word : row.at("words")) {
      CAPTURE(word);
      CHECK(told.find(word) != std::string::npos);
    }
  }
}
