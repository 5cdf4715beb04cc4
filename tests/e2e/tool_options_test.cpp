// What every command and tool has in common: --version, and how a mistake is told.
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "tests/e2e/launch_process.h"
#include "tests/support/catch.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::Outcome;
using test::run_command;
using Words = std::vector<std::string>;

namespace {

/// Those that `dstrain --help` lists.
Words listed_commands() {
  std::istringstream help(run_command({"--help"}).out);
  Words commands;
  bool listed = false;
  for (std::string line; std::getline(help, line);) {
    if (listed && !line.starts_with("  ")) break;
    if (listed) commands.push_back(line.substr(2, line.find(' ', 2) - 2));
    listed |= line == "Commands:";
  }
  return commands;
}

}  // namespace

TEST_CASE("Tools: every command prints the version", "[e2e]") {
  const std::string version = run_command({"--version"}).out;
  CHECK(version.starts_with("dstrain "));
  std::vector<Words> lines{{"--num_gpus", "2", "train", "--max_steps", "1", "--version"},
                           {"bench", "gemm", "--version"},
                           {"bench", "launch", "--version"},
                           {"checkpoint", "export", "--version"},
                           {"config", "check", "--version"},
                           {"status", "no-such-job", "--version"},
                           {"agent", "--version"}};
  for (const std::string& command : listed_commands()) lines.push_back({command, "--version"});
  CHECK(lines.size() == 7 + 17);
  for (const Words& words : lines) {
    INFO(words.front());
    const Outcome outcome = run_command(words);
    CHECK(outcome.status == 0);
    CHECK(outcome.out == version);
    CHECK(outcome.err.empty());
  }
}

TEST_CASE("Tools: an empty boolean and a typographic dash are refused", "[e2e]") {
  const auto told = [](const Words& words) {
    const Outcome outcome = run_command(words);
    CHECK(outcome.status == 2);
    return outcome.err;
  };
  for (const Words& empty : {Words{"--do_sample="}, Words{"--do_sample", ""}}) {
    Words words{"generate", "--model_name_or_path", "m", "--prompt", "a"};
    words.insert(words.end(), empty.begin(), empty.end());
    CHECK_THAT(told(words), ContainsSubstring("--do_sample: needs a value: true or false"));
  }
  CHECK_THAT(told({"status", "--json="}), ContainsSubstring("--json: needs a value"));
  CHECK_THAT(told({"generate", "\u2013prompt", "a"}),
             ContainsSubstring("begins with a typographic dash; write --prompt"));
}

TEST_CASE("Tools: the program of a rank prints its version too", "[e2e]") {
  const std::string dstraind = std::filesystem::path(DSTRAIN_PROGRAM).parent_path() / "dstraind";
  const std::string command = GENERATE("train", "generate", "chat", "evaluate", "bench");
  CHECK_THAT(run_command({dstraind, command, "--version"}).out, ContainsSubstring("dstraind "));
}

TEST_CASE("Tools: a program's --version is the program's", "[e2e]") {
  const Outcome outcome = run_command({"--", "sh", "-c", "echo $0", "--version"});
  CHECK_THAT(outcome.out, ContainsSubstring("--version"));
}

TEST_CASE("Tools: option errors have the same form everywhere", "[e2e]") {
  struct Row {
    Words words;
    const char* message;
  };
  const std::vector<Row> rows{
      {{"status", "--jsn"}, "status: unknown option --jsn; did you mean --json?"},
      {{"status", "a", "b", "c"}, "status: \"b\" does not belong here; see dstrain status --help"},
      {{"save"}, "save: JOB is required; see dstrain save --help"},
      {{"plan", "--total_params", "5"},
       "plan: --device_memory and --host_memory are required; see dstrain plan --help"},
      {{"bench"}, "say what: gemm, comm, adam, checkpoint, io or launch"},
      {{"stop", "a", "--now"}, "stop: unknown option --now; see dstrain stop --help"},
      {{"estimate", "--num_node", "2"}, "estimate: unknown option --num_node; did you mean"},
      {{"estimate", "--num_nodes", "two"}, "estimate: --num_nodes: "},
      {{"estimate", "--num-nodes", "0"}, "estimate: --num_nodes: "},
      {{"estimate", "--num_nodes", ""}, "estimate: --num_nodes: "},
      {{"estimate", "--total_params", " 5"}, "--total_params: must be a number, got \" 5\""},
      {{"generate", "--prompt", "--max_new_tokens", "8"},
       "--prompt needs a value, but --max_new_tokens follows"},
      {{"generate", "--typical-p", "0.5"},
       "unknown option --typical-p; not implemented: generate is"},
      {{"generate", "--max_length", "9"}, "unknown option --max_length; use --max_new_tokens"},
      {{"generate", "--dtype", "bf16"}, "unknown option --dtype; use --bf16 or --fp16"},
      {{"chat", "--max_tokens", "9"}, "chat: unknown option --max_tokens; use --max_new_tokens"},
      {{"chat", "--system"}, "chat: --system"},
      {{"generate", "--num_processes", "2"}, "did you mean --num_gpus, the ranks of each node?"},
      {{"generate", "--temperature", "nan", "--prompt", "a"}, "--temperature: "},
      {{"bench", "gemm", "--runs", "0x5"}, "bench: --runs: must be a number, got \"0x5\""},
      {{"plan", "--device_memory", "1GiB", "--host_memory", "1GiB", "--nvme", ""},
       "plan: --nvme: \"\" is not a size"},
      {{"bench", "gemm", "--rnus", "2"}, "bench: unknown option --rnus; did you mean --runs?"},
      {{"bench", "launch", "--jsn"}, "bench launch: unknown option --jsn; did you mean --json?"},
      {{"generate", "--promt", "a"}, "generate: unknown option --promt; did you mean --prompt?"},
      {{"generate", "--prompt", "--not-an-option", "--model_name_or_path", "/nonexistent"},
       "/nonexistent"},
      {{"generate", "--max-new-tokens", "-1", "--prompt", "a"}, "generate: --max_new_tokens: "},
      {{"generate", "--prompt"}, "generate: --prompt: "},
      {{"checkpoint", "export", "a", "b", "--dtpe", "fp32"},
       "checkpoint export: unknown option --dtpe; did you mean --dtype?"},
      {{"checkpoint", "export", "a", "b", "c"},
       "checkpoint export: \"c\" does not belong here; see dstrain checkpoint --help"},
      {{"plan", "--device_memory", "1GiB", "--host_memory", "1GiB", "--max_stps", "1"},
       "--max_stps: unknown option; did you mean --max_steps?"}};
  for (const Row& row : rows) {
    const Outcome outcome = run_command(row.words);
    CHECK(outcome.status == 2);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, ContainsSubstring(row.message));
  }
}
