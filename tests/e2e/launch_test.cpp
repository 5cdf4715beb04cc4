#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/os/file.h"
#include "tests/e2e/launch_process.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::Launch;
using Words = std::vector<std::string>;
using test::shell_command;

namespace {

Words lines_of(const std::string& text) {
  Words lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("Launch: each rank gets its identity", "[e2e]") {
  Launch launch({"-q", "--num_gpus", "3", "--device_memory", "1MiB", "--timeout", "9", "sh", "-c",
                 "echo $RANK/$LOCAL_RANK/$WORLD_SIZE/$LOCAL_WORLD_SIZE/$LOCAL_SIZE/$CROSS_RANK/"
                 "$CROSS_SIZE/$MASTER_ADDR/$DSTRAIN_TIMEOUT/$DSTRAIN_DEVICE_MEMORY/"
                 "${CUDA_VISIBLE_DEVICES-none}; echo token ${#DSTRAIN_TOKEN} $DSTRAIN_TOKEN"});
  CHECK(launch.wait() == 0);
  std::set<std::string> tokens;
  for (int rank = 0; rank < 3; ++rank) {
    const std::string line =
        fmt::format("[rank {0}]: {0}/{0}/3/3/3/0/1/127.0.0.1/9/1048576/none\n", rank);
    CHECK(launch.out().find(line) != std::string::npos);
  }
  for (const std::string& line : lines_of(launch.out())) {
    const std::size_t at = line.find("token 64 ");
    if (at != line.npos) tokens.insert(line.substr(at));
  }
  CHECK(tokens.size() == 1);
}

TEST_CASE("Launch: help version and list are commands", "[e2e]") {
  const auto out_of = [](const Words& words) {
    Launch launch(words);
    CHECK(launch.wait() == 0);
    CHECK(launch.err().empty());
    return launch.out();
  };
  CHECK(out_of({"help"}) == out_of({"--help"}));
  CHECK(out_of({"version"}) == out_of({"--version"}));
  CHECK(out_of({"help", "plan"}) == out_of({"plan", "--help"}));
  CHECK(out_of({"help", "train"}) == out_of({"train", "--help"}));
  CHECK_THAT(out_of({"list"}), ContainsSubstring("checkpoint") && ContainsSubstring("train"));
  CHECK(out_of({"-q", "printf", "help"}) == "help");
  for (const Words& words : {Words{"--help"}, Words{"plan", "--help"}, Words{"bench", "--help"},
                             Words{"generate", "--help"}, Words{"tokenize", "--help"}}) {
    CHECK_THAT(out_of(words), !ContainsSubstring("INT") && !ContainsSubstring("92233720368"));
  }
}

TEST_CASE("Launch: every help puts defaults in brackets", "[e2e]") {
  for (const Words& words :
       {Words{"--help"}, Words{"train", "--help-all"}, Words{"bench", "--help"},
        Words{"generate", "--help"}, Words{"tokenize", "--help"}, Words{"plan", "--help"},
        Words{"estimate", "--help"}}) {
    Launch launch(words);
    CHECK(launch.wait() == 0);
    int defaults = 0;
    for (const std::string& line : lines_of(launch.out())) {
      CAPTURE(line);
      const bool of_option = line.starts_with("  -") || line.starts_with("      ");
      if (of_option) CHECK((!line.ends_with(')') || line.ends_with("(required)")));
      if (line.ends_with(']')) ++defaults;
    }
    CHECK(defaults > 0);
  }
}

TEST_CASE("Launch: a bare word that is not a command runs no program", "[e2e]") {
  const auto error_of = [](const Words& words) {
    Launch launch(words);
    CHECK(launch.wait() == 2);
    CHECK(launch.out().empty());
    return launch.err();
  };
  CHECK_THAT(error_of({"trian"}),
             ContainsSubstring(R"("trian" is not a command; did you mean "train"?)"));
  CHECK_THAT(error_of({"printf", "x"}), ContainsSubstring("write dstrain -- printf"));
  CHECK_THAT(error_of({"run", "--num_gpus", "2", "t.py"}),
             ContainsSubstring("leave it out: dstrain ["));
  CHECK_THAT(error_of({"torchrun", "train.py"}), ContainsSubstring("dstrain takes its place"));
  for (const Words& words :
       {Words{"--", "printf", "x"}, Words{"-q", "printf", "x"}, Words{"/usr/bin/printf", "x"}}) {
    Launch launch(words);
    CHECK(launch.wait() == 0);
    CHECK_THAT(launch.out(), ContainsSubstring("x"));
  }
}

TEST_CASE("Launch: another launcher is not started once for each rank", "[e2e]") {
  const Words words = GENERATE(values<Words>({
      {"--num_gpus", "2", "torchrun", "--nproc_per_node", "2", "t.py"},
      {"--num_gpus", "2", "accelerate", "launch", "t.py"},
      {"--num_gpus", "2", "/usr/bin/mpirun", "-np", "2", "./a.out"},
      {"--num_gpus", "2", "--no_local_rank", "deepspeed", "t.py"},
      {"--num_gpus", "2", "python3", "-m", "torch.distributed.run", "t.py"},
      {"--num_gpus", "2", "--module", "torch.distributed.launch", "t.py"},
  }));
  CAPTURE(words);
  Launch launch(words);
  CHECK(launch.wait() == 2);
  CHECK(launch.out().empty());
  CHECK_THAT(launch.err(), ContainsSubstring("each of 2 ranks would start it; dstrain takes its"));
}

TEST_CASE("Launch: variables set by the user are kept", "[e2e]") {
  const test::TempDir directory;
  write_text_file(directory.path() / ".deepspeed_env", "\n# c\nFROM_FILE='a b'\nB=$HOME\n");
  Launch::Options options;
  options.env = {{"OMP_NUM_THREADS", "5"}, {"DSTRAIN_TOKEN", "mine"}, {"HOME", "/nonexistent"}};
  options.directory = directory.path().string();
  Launch launch({"--log_level", "warning", "--env", "TYPED=$(x)", "sh", "-c",
                 "echo \"$OMP_NUM_THREADS|$DSTRAIN_TOKEN|$FROM_FILE|$TYPED\""},
                options);
  CHECK(launch.wait() == 0);
  CHECK(launch.out() == "5|mine|a b|$(x)\n");
  const std::string dollar = ".deepspeed_env:4: B: its $ is passed on unchanged";
  CHECK_THAT(launch.err(), ContainsSubstring(dollar));
  CHECK(launch.err().find(dollar) == launch.err().rfind(dollar));
}

TEST_CASE("Launch: arguments arrive byte for byte", "[e2e]") {
  const Words words{"I am 6' tall",
                    "\"I am 6' tall\"",
                    "'I am 72\" tall'",
                    "I am 72\" tall",
                    "\"translate English to Romanian: \"",
                    "I'm going to tell them \"DeepSpeed is the best\"",
                    "",
                    " ",
                    "$(touch x)",
                    "`id`;&|<>*?",
                    "new\nline",
                    "tab\t",
                    "\xff\xfe",
                    "h\xc3\xa9",
                    "--num_gpus",
                    "9",
                    "--",
                    "-q",
                    std::string(100'000, 'x')};
  Words arguments{"-q", "sh", "-c", "printf '%s\\0' \"$@\"", "sh"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  Launch launch(arguments);
  CHECK(launch.wait() == 0);
  std::string expected;
  for (const std::string& word : words) expected += word + '\0';
  CHECK((launch.out() == expected));
}

TEST_CASE("Launch: Python programs get their local rank first", "[e2e]") {
  // A stand-in shows what the interpreter is given: Python is not needed to test.
  const test::TempDir directory;
  const std::filesystem::path python = directory.path() / "python3";
  write_text_file(python, "#!/bin/sh\nfor word; do printf '<%s>' \"$word\"; done; echo\n");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const std::string script = (directory.path() / "show.py").string();
  write_text_file(script, "never read\n");
  const Launch::Options options{
      .env = {{"PATH", directory.path().string() + ":" + std::getenv("PATH")}}, .directory = {}};
  Launch launch({"-q", "--num_gpus", "2", script, "--num_gpus", "7"}, options);
  CHECK(launch.wait() == 0);
  CHECK(launch.out().find("[rank 1]: <-u><" + script + "><--local_rank=1><--num_gpus><7>") !=
        std::string::npos);
  Launch without({"-q", "--no_local_rank", script, "a b"}, options);
  CHECK(without.wait() == 0);
  CHECK(without.out() == "<-u><" + script + "><a b>\n");
}

TEST_CASE("Launch: several ranks get prefixes and a single one does not", "[e2e]") {
  Launch two(shell_command(2, "printf 'out\\npartial'; printf 'bar 1\\rbar 2\\r' >&2"));
  CHECK(two.wait() == 0);
  for (const char* line : {"[rank 0]: out\n", "[rank 1]: partial\n"}) {
    CHECK(two.out().find(line) != std::string::npos);
  }
  CHECK(two.err().find("[rank 1]: bar 1\n") != std::string::npos);
  Launch one(shell_command(1, "printf 'bar 1\\rbar 2\\r'; printf 'no end' >&2"));
  CHECK(one.wait() == 0);
  CHECK(one.out() == "bar 1\rbar 2\r");
  CHECK(one.err() == "no end");
}

TEST_CASE("Launch: the first failing rank gives the status", "[e2e]") {
  struct Row {
    int ranks;
    const char* script;
    int status;
  };
  const auto row = GENERATE(values<Row>({
      {2, "true", 0},
      {2, "test $RANK = 0 || exit 7", 7},
      {3, "test $RANK != 1 || exit 9; sleep 1000", 9},
      {2, "test $RANK = 0 && kill -SEGV $$; exec sleep 1000", 139},
      {2, "test $RANK = 0 && kill -9 $$; exec sleep 1000", 137},
      {2, "exit 75", 75},
      {1, "exit 4", 4},
  }));
  CAPTURE(row.script);
  Launch launch(shell_command(row.ranks, row.script));
  CHECK(launch.wait() == row.status);
  CHECK(launch.nothing_left());
}

TEST_CASE("Launch: a program that cannot be started is reported in few lines", "[e2e]") {
  struct Row {
    const char* option;  ///< empty: none
    const char* program;
    int status;
  };
  const auto row = GENERATE(values<Row>({
      {"", "no-such-program", 2},
      {"--", "no-such-program", 3},
      {"", "./no-such-program", 3},
      {"", "no-such-script.py", 3},
      {"", "/etc/passwd", 3},
      {"", "trian", 2},
      {"", "", 2},
      {"--", "", 3},
      {"--num_gpsu=2", "true", 2},
      {"--hostfile=/nonexistent/hosts", "true", 2},
      {"--elastic_training", "true", 2},
      {"--num_gpus=2", "agent", 2},
      {"--num_gpus=2", "--save_pid", 2},
  }));
  CAPTURE(row.option, row.program);
  Words words{row.program};
  if (*row.option != '\0') words.insert(words.begin(), row.option);
  Launch launch(words);
  CHECK(launch.wait() == row.status);
  CHECK(lines_of(launch.err()).size() <= 3);
  CHECK(launch.err().find("dstrain: error: ") != std::string::npos);
}

TEST_CASE("Launch: a program that cannot be executed is status 3", "[e2e]") {
  const test::TempDir directory;
  const auto path = directory.path() / "program";
  write_text_file(path, "echo no first line\n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  Launch launch({"--num_gpus", "2", path.string()});
  CHECK(launch.wait() == 3);
  CHECK(launch.err().find("not a program") != std::string::npos);
}

TEST_CASE("Launch: a crash is reported in one block", "[e2e]") {
  const test::TempDir directory;
  const std::string logs = (directory.path() / "logs").string();
  Launch launch({"--num_gpus", "2", "--enable_each_rank_log", logs, "sh", "-c",
                 "echo $$; if [ $RANK = 1 ]; then for i in 1 2 3 4 5 6 7 8 9 10 11 12; do "
                 "echo line $i; done; echo last words >&2; exit 7; fi; exec sleep 1000"});
  CHECK(launch.wait() == 7);
  const std::string& err = launch.err();
  const std::size_t at = err.find("dstrain: error: rank 1 on localhost (pid ");
  REQUIRE(at != err.npos);
  const std::string block = err.substr(at);
  CHECK(block.find(") ended with status 7\n  last lines of rank 1:\n") != block.npos);
  CHECK(block.find("    line 12\n") != block.npos);
  CHECK(block.find("    last words\n") != block.npos);
  CHECK(block.find("    line 1\n") == block.npos);
  const std::size_t log_at = block.find("  log file: ");
  REQUIRE(log_at != block.npos);
  const std::string log = block.substr(log_at + 12, block.size() - log_at - 13);
  CHECK(log.ends_with("_rank1.log"));
  const std::string text = read_text_file(log, mebibyte);
  CHECK(text.find("line 1\n") != text.npos);
  CHECK(text.find("last words\n") != text.npos);
}

TEST_CASE("Launch: dry run starts nothing and shows everything", "[e2e]") {
  const test::TempDir directory;
  Launch launch({"--num_gpus", "2", "--dry_run", "--env", "MY_SECRET=canary", "touch",
                 (directory.path() / "file").string()});
  CHECK(launch.wait() == 0);
  const auto json = nlohmann::json::parse(launch.out());
  CHECK(json["launcher"] == "local");
  CHECK(json["world_size"] == 2);
  CHECK(json["commands"].size() == 2);
  CHECK(launch.out().find("canary") == std::string::npos);
  CHECK_FALSE(std::filesystem::exists(directory.path() / "file"));
}

TEST_CASE("Launch: two jobs together have two ports", "[e2e]") {
  Launch first(shell_command(1, "echo port $MASTER_PORT; exec sleep 1000"));
  REQUIRE(first.wait_for_output("port"));
  Launch second(shell_command(1, "echo port $MASTER_PORT"));
  CHECK(second.wait() == 0);
  CHECK(first.out() != second.out());
}

TEST_CASE("Launch: the port of another program is left to it", "[e2e]") {
  Launch launch(shell_command(
      1,
      "echo listener ${DSTRAIN_LISTENER_FD-none}; "
      "bash -c ': <>/dev/tcp/127.0.0.1/'$MASTER_PORT 2>&1 | grep -o 'Connection refused'"));
  CHECK(launch.wait() == 0);
  CHECK_THAT(launch.out(), Catch::Matchers::ContainsSubstring("listener none") &&
                               Catch::Matchers::ContainsSubstring("refused"));
}

TEST_CASE("Launch: no line of a flood of output is lost or torn", "[e2e]") {
  constexpr int ranks = 8;
  constexpr int lines = 20'000;
  Launch launch(shell_command(ranks, fmt::format("seq 1 {}", lines)));
  CHECK(launch.wait() == 0);
  std::map<std::string, int> next;
  int wrong = 0;
  for (const std::string& line : lines_of(launch.out())) {
    const std::size_t end = line.find("]: ");
    if (end == line.npos) {
      ++wrong;
      continue;
    }
    if (line.substr(end + 3) != std::to_string(++next[line.substr(0, end)])) ++wrong;
  }
  CHECK(wrong == 0);
  CHECK(next.size() == ranks);
  for (const auto& [rank, last] : next) CHECK(last == lines);
}

TEST_CASE("Launch: a line without an end stays in order", "[e2e]") {
  Launch launch(shell_command(2, "head -c 1000000 /dev/zero | tr '\\0' $RANK"));
  CHECK(launch.wait() == 0);
  std::map<char, std::size_t> bytes;
  for (const std::string& line : lines_of(launch.out())) {
    REQUIRE(line.size() > 10);
    const char rank = line[6];
    CHECK(line.find_first_not_of(rank, 10) == line.npos);
    CHECK(line.size() <= 10 + (64U << 10));
    bytes[rank] += line.size() - 10;
  }
  CHECK(bytes['0'] == 1'000'000);
  CHECK(bytes['1'] == 1'000'000);
}

TEST_CASE("Launch: a reader that leaves does not end the job", "[e2e]") {
  const test::TempDir directory;
  const std::string done = (directory.path() / "done").string();
  Launch launch(shell_command(2, "seq 1 200000; test $RANK = 1 || echo done > " + done));
  REQUIRE(launch.wait_for_output("[rank 0]: 1\n"));
  launch.stop_reading_stdout();
  CHECK(launch.wait() == 0);
  CHECK(std::filesystem::exists(done));
}

TEST_CASE("Launch: closed standard output is no output", "[e2e]") {
  Launch::Options options;
  options.wrapper = {"sh", "-c", "exec \"$@\" >&-", "sh"};
  Launch launch(shell_command(2, "echo lost; echo kept >&2; exit 5"), options);
  CHECK(launch.wait() == 5);
  CHECK(launch.out().empty());
  CHECK(launch.err().find("]: kept\n") != std::string::npos);
}
