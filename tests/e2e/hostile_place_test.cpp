// Launches where others may have put something: a shared directory of logs or of temporary files,
// a working directory. Owners are changed, which needs root.
#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "runtime/base/utf8.h"
#include "runtime/os/file.h"
#include "tests/e2e/launch_process.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::Launch;
using test::Outcome;
using test::run_command;
using Words = std::vector<std::string>;
namespace fs = std::filesystem;

TEST_CASE("Hostile place: log files that are links or pipes are refused", "[e2e]") {
  const test::TempDir folder;
  const bool link = GENERATE(false, true);
  const fs::path victim = folder.path() / "victim";
  // Of all the names that a rank's log may have while this test runs.
  const std::time_t now = std::time(nullptr);
  for (std::time_t time = now; time < now + 400; ++time) {
    const fs::path log =
        folder.path() / fmt::format("{:%Y%m%d%H%M%S}_rank0.log", fmt::localtime(time));
    if (link) {
      fs::create_symlink(victim, log);
    } else {
      REQUIRE(::mkfifo(log.c_str(), 0600) == 0);
    }
  }
  Launch launch({"-q", "--enable_each_rank_log", folder.path().string(), "true"});
  CHECK(launch.wait() == 3);
  CHECK_THAT(launch.err(), ContainsSubstring("_rank0.log: ") &&
                               ContainsSubstring(link ? "a symbolic link" : "not a regular file"));
  CHECK(launch.nothing_left());
  CHECK_FALSE(fs::exists(victim));
}

TEST_CASE("Hostile place: the pid file follows no link and replaces no file", "[e2e]") {
  const test::TempDir folder;
  std::ofstream(folder.path() / "victim") << "precious";
  Launch::Options options;
  options.env = {{"TMPDIR", folder.path().string()}};
  // What is there before has the name that the launcher, which the shell becomes, will look for.
  const auto with = [&](const std::string& before) {
    options.wrapper = {"sh", "-c", "cd $TMPDIR; f=$$.deepspeed; " + before + "; exec \"$@\"", "sh"};
    return run_command({"-q", "--save_pid", "sh", "-c", "cat $TMPDIR/*.deepspeed"}, options);
  };
  for (const char* const before : {"true", "echo left >$f", "ln -s victim $f"}) {
    CAPTURE(before);
    const Outcome outcome = with(before);
    CHECK(outcome.status == 0);
    CHECK(std::atoi(outcome.out.c_str()) > 0);
    CHECK(read_text_file(folder.path() / "victim", mebibyte) == "precious");
    CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
  }
  if (::geteuid() == 0) {
    const Outcome refused = with("echo theirs >$f; chown 54321 $f");
    CHECK(refused.status == 1);
    CHECK(refused.out.empty());
    CHECK_THAT(refused.err,
               ContainsSubstring("belongs to uid 54321") && ContainsSubstring("TMPDIR"));
    CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 2);
  }
}

TEST_CASE("Hostile place: environment files of other users are refused", "[e2e]") {
  const test::TempDir folder;
  const char* const name = GENERATE(".deepspeed_env", ".dstrain_env");
  const fs::path file = folder.path() / name;
  std::ofstream(file) << "PLANTED=yes\n";
  const auto run = [&] {
    return run_command({"-q", "sh", "-c", "echo \"[$PLANTED]\""},
                       {.env = {{"HOME", "/nonexistent"}}, .directory = folder.path().string()});
  };
  CHECK(run().out == "[yes]\n");
  fs::permissions(file, fs::perms::group_write, fs::perm_options::add);
  const Outcome writable = run();
  CHECK(writable.status == 2);
  CHECK_THAT(writable.err, ContainsSubstring(name) && ContainsSubstring("is writable by others") &&
                               ContainsSubstring("chmod go-w " + file.string()));
  fs::permissions(file, fs::perms::group_write, fs::perm_options::remove);
  if (::chown(file.c_str(), 54'321, static_cast<gid_t>(-1)) == 0) {
    const Outcome foreign = run();
    CHECK(foreign.status == 2);
    CHECK(foreign.out.empty());
    CHECK_THAT(foreign.err, ContainsSubstring(name) && ContainsSubstring("belongs to uid 54321") &&
                                ContainsSubstring("remove it"));
  }
}

TEST_CASE("Hostile place: a full stdout is reported", "[e2e]") {
  const Words words = GENERATE(
      Words{"--", "echo", "of a rank"}, Words{"--dry_run", "true"},
      Words{"plan", "--device_memory", "9GiB", "--host_memory", "9GiB", "--config_name", "gpt2"});
  CAPTURE(words);
  const Launch::Options full{
      .env = {}, .directory = "", .wrapper = {"sh", "-c", "exec \"$@\" >/dev/full", "sh"}};
  const Outcome outcome = run_command(words, full);
  CHECK(outcome.status == 1);
  CHECK_THAT(outcome.err, ContainsSubstring("No space left on device"));
}

TEST_CASE("Hostile place: another user's link to a directory is not followed", "[e2e]") {
  const test::TempDir folder;
  const fs::path link = folder.path() / "link";
  fs::create_directory(folder.path() / "victim");
  fs::create_directory_symlink("victim", link);
  std::ofstream(folder.path() / "text.txt") << std::string(500, 'x');
  const std::string place = GENERATE("link", "link/sub", "link/sub/more");
  const std::vector<std::string> train{"train",    "--config_name", "gpt2", "--train_file",
                                       "text.txt", "--block_size",  "4"};
  std::vector<std::vector<std::string>> commands{
      {"--enable_each_rank_log", place, "true"},
      {"tokenize", "--tokenizer", "byte", "--output_dir", place, "text.txt"},
      train,
      train};
  commands[2].insert(commands[2].end(), {"--output_dir", place});
  commands[3].insert(commands[3].end(), {"--output_dir", "own", "--profile", "link/trace.json"});
  const std::vector<std::string> words = GENERATE_COPY(from_range(commands));
  CAPTURE(words);
  if (::lchown(link.c_str(), 54'321, static_cast<gid_t>(-1)) == 0) {
    const Outcome refused = run_command(words, {.env = {}, .directory = folder.path().string()});
    CHECK(refused.status != 0);
    CHECK_THAT(refused.err, ContainsSubstring("link: a symbolic link of uid 54321") ||
                                ContainsSubstring("link is a symbolic link of uid 54321"));
    CHECK(fs::is_empty(folder.path() / "victim"));
  }
}

TEST_CASE("Hostile place: a removed directory is named", "[e2e]") {
  const test::TempDir folder;
  const Outcome left = run_command(
      {"--", "true"},
      {.env = {},
       .directory = folder.path().string(),
       .wrapper = {"sh", "-c", "mkdir gone && cd gone && rmdir ../gone; exec \"$@\"", "sh"}});
  CHECK(left.status == 2);
  CHECK_THAT(left.err, ContainsSubstring("the working directory: No such file or directory"));
  const Outcome temporary =
      run_command({"--save_pid", "true"}, {.env = {{"TMPDIR", "/nonexistent"}}, .directory = ""});
  CHECK(temporary.status == 1);
  CHECK_THAT(temporary.err, ContainsSubstring("--save_pid: TMPDIR is not a directory"));
}

TEST_CASE("Hostile place: a program is a path or a name on PATH", "[e2e]") {
  const test::TempDir folder;
  for (const char* const name : {"trian", "my_program"}) {
    const fs::path program = folder.path() / name;
    std::ofstream(program) << "#!/bin/sh\necho ran\n";
    fs::permissions(program, fs::perms::owner_all);
  }
  const auto run = [&](const char* word) {
    return run_command({"-q", word}, {.env = {}, .directory = folder.path().string()});
  };
  const Outcome misspelt = run("trian");
  CHECK(misspelt.status == 2);
  CHECK(misspelt.out.empty());
  CHECK_THAT(misspelt.err, ContainsSubstring("did you mean \"train\"?"));
  const Outcome bare = run("my_program");
  CHECK(bare.status == 3);
  CHECK(bare.out.empty());
  CHECK_THAT(bare.err, ContainsSubstring("write ./my_program"));
  CHECK(run("./trian").out == "ran\n");
}

namespace {

/// Nothing of what was printed moves a cursor, or is much.
void check_printable(const std::string& text, std::ptrdiff_t lines) {
  CAPTURE(text.substr(0, 2000));
  CHECK(text.size() < 1500);
  CHECK(std::ranges::count(text, '\n') == lines);
  CHECK(std::ranges::none_of(
      text, [](char c) { return c != '\n' && static_cast<unsigned char>(c) < ' '; }));
  CHECK_FALSE(find_invalid_utf8(text));
}

}  // namespace

TEST_CASE("Hostile place: keys of a configuration move no cursor and are not shown whole",
          "[e2e]") {
  const test::TempDir folder;
  const fs::path file = folder.path() / "config.json";
  const std::string key = GENERATE(as<std::string>{}, R"(\u001b[2Jx)", R"(a\u0000b)",
                                   R"(a\ndstrain: info: fine)", std::string(900'000, 'a'));
  const std::string again = GENERATE("", R"("fp16": {"enabled": true}, "fp16": 3, )");
  std::ofstream(file) << fmt::format(R"({{{}"{}": 1}})", again, key);
  const Outcome outcome = run_command({"config", "check", file.string()});
  CHECK(outcome.status == 2);
  CHECK_THAT(outcome.out + outcome.err, ContainsSubstring("config.json:1:"));
  check_printable(outcome.out + outcome.err, again.empty() ? 1 : 2);
}

TEST_CASE("Hostile place: a hostfile moves no cursor and is not shown whole", "[e2e]") {
  const test::TempDir folder;
  const fs::path file = folder.path() / "hosts";
  using std::string_literals::operator""s;
  const std::string text =
      GENERATE_COPY("h\x1b]0;mine\x07 slots=1\n"s, "h slots=1 \x1b[2J\n"s, "h slots=\x9b\xff\n"s,
                    "h slots=1 a\0b\n"s, std::string(900'000, 'a') + " slots=1\n");
  std::ofstream(file) << text;
  const Outcome outcome = run_command({"-H", file.string(), "true"});
  CHECK(outcome.status == 2);
  CHECK_THAT(outcome.err, ContainsSubstring("hosts:1:"));
  check_printable(outcome.err, 1);
}
