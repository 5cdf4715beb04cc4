// What a shell completes.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "tests/e2e/launch_process.h"
#include "tests/support/catch.h"
#include "tests/support/rank_process.h"
#include "tests/support/skip.h"

using namespace dstrain;
using Words = std::vector<std::string>;

namespace {

Words candidates_in(const std::string& text) {
  Words lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The last word is the one at the cursor.
Words complete(const Words& words) {
  Words command{"complete"};
  command.insert(command.end(), words.begin(), words.end());
  const test::Outcome outcome = test::run_command(command);
  CAPTURE(outcome.err);
  CHECK(outcome.status == 0);
  return candidates_in(outcome.out);
}

bool has(const Words& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

/// The last line that bash prints for the candidates of a command line.
std::string complete_in_bash(const Words& words) {
  std::string line;
  for (const std::string& word : words) line += fmt::format("'{}' ", word);
  const std::string script = fmt::format(
      "eval \"$('{0}' completion bash)\"; COMP_WORDS=({1}); COMP_CWORD={2}; "
      "_dstrain '{0}' '{3}'; echo \"${{COMPREPLY[*]}}\"",
      DSTRAIN_PROGRAM, line, words.size() - 1, words.back());
  test::RankProcess bash({{"/bin/bash", "-c", script}, {}});
  const Words lines = candidates_in(bash.read_all());
  CHECK(bash.wait() == 0);
  return lines.empty() ? "" : lines.back();
}

void check_syntax(const std::string& shell) {
  const auto run = [](const std::string& script) {
    test::RankProcess process({{"/bin/sh", "-c", script}, {}});
    CAPTURE(process.read_all());
    return process.wait();
  };
  if (run("command -v " + shell) != 0) test::skip(shell + " is not installed");
  CHECK(run(fmt::format("'{}' completion {} | {} -n", DSTRAIN_PROGRAM, shell, shell)) == 0);
}

}  // namespace

TEST_CASE("Completion: commands and options by what stands before the cursor", "[e2e]") {
  struct Line {
    Words words;
    Words offered;
    Words others;
  };
  for (const Line& line : {
           Line{{""}, {"train", "plan", "help"}, {"agent", "complete", "--hostfile"}},
           Line{{"tr"}, {"train"}, {"plan"}},
           Line{{"--num_gpus", "2", ""}, {"train"}, {"--num_gpus"}},
           Line{{"--laun"}, {"--launcher", "--launcher_args"}, {"--hostfile"}},
           Line{{"--launcher", ""}, {"slurm", "ssh"}, {"train"}},
           Line{{"--hostfile", ""}, {}, {"train"}},  // a file
           Line{{"--num_gpus", ""}, {}, {"train"}},
           Line{{"estimate", "--stage", ""}, {"2", "3"}, {"sft"}},
           Line{{"tokenize", "--format", "m"}, {"megatron"}, {"llmc"}},
           Line{{"tokenize", "--input", ""}, {}, {"llmc"}},  // a file
           Line{{"checkpoint", "export", "--dtype", ""}, {"fp32", "bf16"}, {"list"}},
           Line{{"init", ""}, {"pretrain", "finetune"}, {"--output"}},
           Line{{"train", "--config_name=gpt2-x"}, {"--config_name=gpt2-xl"}, {"gpt2-xl"}},
           Line{{"train", "--config_name", "=", "gpt2-x"}, {"gpt2-xl"}, {"gpt2"}},
           Line{{"train", "--config_name", "="}, {"gpt2-xl"}, {"--config_name"}},
           Line{{"--device=cu"}, {"--device=cuda"}, {"cpu"}},
           Line{{"--device", "cu"}, {"cuda"}, {"cpu"}},
           Line{{"train", "--lr_sch"}, {"--lr_scheduler_type"}, {"--launcher"}},
           Line{{"--num_gpus", "2", "train", "--lr_scheduler_type", "c"}, {"cosine"}, {"linear"}},
           Line{{"train", "--config_name", "gpt2"}, {"gpt2", "gpt2-xl"}, {"llama-3-8b"}},
           Line{{"train", "--train_file", ""}, {}, {"--train_file"}},  // a file
           Line{{"checkpoint", ""}, {"list", "verify", "prune", "export"}, {"gemm"}},
           Line{{"checkpoint", "prune", "--"}, {"--keep"}, {"--dtype"}},
           Line{{"bench", ""}, {"gemm", "comm", "io", "launch"}, {"list"}},
           Line{{"bench", "gemm", "--"}, {"--json", "--block_size"}, {"--numel"}},
           Line{{"bench", "launch", "--"}, {"--help"}, {"--numel"}},
           Line{{"init", "pretrain", "--train"}, {"--train_file"}, {"--output"}},
           Line{{"init", "pretrain", "--config_name", "gpt2-x"}, {"gpt2-xl"}, {"gpt2"}},
           Line{{"plan", "--device"}, {"--device", "--device_memory"}, {"--json"}},
           Line{{"status", "--"}, {"--json", "--stacks"}, {"--keep"}},
           Line{{"completion", "z"}, {"zsh"}, {"bash"}},
           Line{{"help", "to"}, {"tokenize"}, {"train"}},
           Line{{"my_program", "--"}, {}, {"--json"}},
           Line{{"train", "--version"}, {}, {"dstrain"}},
       }) {
    CAPTURE(line.words);
    const Words found = complete(line.words);
    CAPTURE(found);
    for (const std::string& word : line.offered) CHECK(has(found, word));
    for (const std::string& word : line.others) CHECK(!has(found, word));
    if (line.offered.empty()) CHECK(found.empty());
  }
}

TEST_CASE("Completion: every command completes its options", "[e2e]") {
  for (const std::string& command : complete({""})) {
    if (command == "help" || command == "version" || command == "list") continue;
    CAPTURE(command);
    Words options = complete({command, "--"});
    for (const std::string& within : complete({command, ""})) {
      const Words more = complete({command, within, "--"});
      options.insert(options.end(), more.begin(), more.end());
    }
    CHECK(options.empty() == (command == "completion"));
    for (const std::string& option : options) {
      CAPTURE(option);
      CHECK(option.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == option.npos);
    }
  }
}

TEST_CASE("Completion: bash completes through the script", "[e2e]") {
  CHECK(complete_in_bash({"dstrain", "--launcher_"}) == "--launcher_args");
  CHECK(complete_in_bash({"dstrain", "train", "--config_name", "gpt2-x"}) == "gpt2-xl");
  CHECK(complete_in_bash({"dstrain", "checkpoint", "ver"}) == "verify");
  CHECK(complete_in_bash({"dstrain", "train", "--train_file", "no such"}).empty());
}

TEST_CASE("Completion: zsh can read its script", "[e2e]") {
  check_syntax("zsh");
}

TEST_CASE("Completion: fish can read its script", "[e2e]") {
  check_syntax("fish");
  const std::filesystem::path program = DSTRAIN_PROGRAM;
  const auto complete_in_fish = [&](const std::string& line) {
    const std::string script = fmt::format(
        "cd / && PATH='{}':$PATH fish --no-config -c "
        "\"dstrain completion fish | source; complete --do-complete '{}'\"",
        program.parent_path().string(), line);
    test::RankProcess fish({{"/bin/sh", "-c", script}, {}});
    return candidates_in(fish.read_all());
  };
  CHECK(complete_in_fish("dstrain init ") == Words{"finetune", "pretrain"});
  CHECK(has(complete_in_fish("dstrain train --config "), "tmp/"));
}

TEST_CASE("Completion: an unknown shell is refused", "[e2e]") {
  const test::Outcome outcome = test::run_command({"completion", "tcsh"});
  CHECK(outcome.status == 2);
  CHECK_THAT(outcome.err, Catch::Matchers::ContainsSubstring("bash, zsh or fish"));
}
