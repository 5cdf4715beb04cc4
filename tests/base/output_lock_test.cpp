#include "runtime/rank/output_lock.h"

#include <filesystem>
#include <future>
#include <optional>

#include <sys/wait.h>
#include <unistd.h>

#include "runtime/os/file.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;
using Holder = OutputLock::Holder;

std::string owner_in(const TempDir& folder) {
  return read_text_file(folder.path() / OutputLock::file_name, 4096);
}

TEST_CASE("OutputLock: one job at a time writes to a directory", "[base][lock]") {
  const TempDir folder;
  const Holder first = GENERATE(Holder::launcher, Holder::rank);
  const Holder second = GENERATE(Holder::launcher, Holder::rank);
  const auto take = [&] {
    const OutputLock lock(folder.path(), second, "b");
  };
  const auto look = [&] {
    refuse_locked_output(folder.path());
  };
  look();
  CHECK(fs::is_empty(folder.path()));
  {
    const OutputLock lock(folder.path(), first, "a");
    CHECK_THAT(owner_in(folder), Catch::Matchers::StartsWith("job a, process "));
    CHECK_THAT(error_of(take),
               ContainsSubstring("job a, process ") && ContainsSubstring(" writes there; wait"));
    CHECK_THAT(error_of(look),
               ContainsSubstring("job a, process ") && ContainsSubstring(" writes there; wait"));
    CHECK_THAT(owner_in(folder), Catch::Matchers::StartsWith("job a, process "));
  }
  CHECK(fs::is_empty(folder.path()));
  take();
  refuse_locked_output(folder.path() / "missing");
}

TEST_CASE("OutputLock: the launcher keeps the lock while no rank holds it", "[base][lock]") {
  const TempDir folder;
  const auto intrude = [&] {
    const OutputLock lock(folder.path(), Holder::rank, "b");
  };
  {
    const OutputLock launcher(folder.path(), Holder::launcher, "a");
    for (int start = 0; start < 2; ++start) {
      { const OutputLock rank(folder.path(), Holder::rank, "a"); }
      CHECK_THAT(error_of(intrude), ContainsSubstring("job a, "));
    }
  }
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("OutputLock: a killed process leaves no lock", "[base][lock]") {
  const TempDir folder;
  const pid_t child = ::fork();
  if (child == 0) {
    const OutputLock lock(folder.path(), Holder::launcher, "a");
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  REQUIRE(fs::exists(folder.path() / OutputLock::file_name));
  refuse_locked_output(folder.path());
  const OutputLock lock(folder.path(), Holder::launcher, "longer name");
  CHECK_THAT(owner_in(folder), Catch::Matchers::StartsWith("job longer name, "));
}

TEST_CASE("OutputLock: a read-only user cannot hold the lock", "[base][lock]") {
  const TempDir folder;
  const fs::path path = folder.path() / OutputLock::file_name;
  // Of who came before, with others that may write and others that may not.
  const auto [before, after] = GENERATE(table<unsigned, unsigned>({{0644, 0600}, {0664, 0660}}));
  write_text_file(path, "left");
  fs::permissions(path, static_cast<fs::perms>(before));
  const OutputLock lock(folder.path(), Holder::launcher, "job \x1b[2J");
  CHECK(fs::status(path).permissions() == static_cast<fs::perms>(after));
  const std::string refused =
      error_of([&] { const OutputLock other(folder.path(), Holder::launcher, "b"); });
  CHECK_THAT(refused, ContainsSubstring(R"(job job \x1b[2J)"));
}

TEST_CASE("OutputLock: a rank waits for an earlier one of its own job", "[base][lock]") {
  const TempDir folder;
  std::optional<OutputLock> first;
  first.emplace(folder.path(), Holder::rank, "a");
  std::promise<void> begun;
  std::future<void> second = std::async(std::launch::async, [&] {
    begun.set_value();
    const OutputLock lock(folder.path(), Holder::rank, "a");
  });
  begun.get_future().wait();
  CHECK(second.wait_for(std::chrono::milliseconds(100)) == std::future_status::timeout);
  first.reset();
  CHECK(error_of([&] { second.get(); }).empty());
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("OutputLock: links and everything but regular files are refused", "[base][lock]") {
  const TempDir folder;
  const fs::path other = folder.path() / "other";
  write_text_file(other, "kept");
  const fs::path path = folder.path() / OutputLock::file_name;
  const auto take = [&] {
    const OutputLock lock(folder.path(), Holder::rank, "a");
  };
  fs::create_symlink(other, path);
  CHECK_FALSE(error_of(take).empty());
  CHECK(read_text_file(other, 4096) == "kept");
  fs::remove(path);
  fs::create_directory(path);
  CHECK_FALSE(error_of(take).empty());
}

}  // namespace
}  // namespace dstrain::test
