// Launches where others may have put something: a shared directory of logs or of temporary files,
// a working directory. Owners are changed, which needs root.
#include <ctime>
#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "runtime/base/file.h"
#include "tests/e2e/launch_process.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Contains;
using test::Launch;
using test::Outcome;
using test::run_command;
namespace fs = std::filesystem;

TEST_CASE("Hostile place: what is no file is no log", "[e2e]") {
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
  CHECK_THAT(launch.err(),
             Contains("_rank0.log: ") && Contains(link ? "a symbolic link" : "not a regular file"));
  CHECK(launch.nothing_left());
  CHECK_FALSE(fs::exists(victim));
}

TEST_CASE("Hostile place: the pid file follows no link and takes nobody's place", "[e2e]") {
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
    CHECK_THAT(refused.err, Contains("belongs to uid 54321") && Contains("TMPDIR"));
    CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 2);
  }
}

TEST_CASE("Hostile place: variables of others are not obeyed", "[e2e]") {
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
  CHECK_THAT(writable.err, Contains(name) && Contains("may be written by others") &&
                               Contains("chmod go-w " + file.string()));
  fs::permissions(file, fs::perms::group_write, fs::perm_options::remove);
  if (::chown(file.c_str(), 54'321, static_cast<gid_t>(-1)) == 0) {
    const Outcome foreign = run();
    CHECK(foreign.status == 2);
    CHECK(foreign.out.empty());
    CHECK_THAT(foreign.err,
               Contains(name) && Contains("belongs to uid 54321") && Contains("remove it"));
  }
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
  CHECK_THAT(misspelt.err, Contains("did you mean \"train\"?"));
  const Outcome bare = run("my_program");
  CHECK(bare.status == 3);
  CHECK(bare.out.empty());
  CHECK_THAT(bare.err, Contains("write ./my_program"));
  CHECK(run("./trian").out == "ran\n");
}
