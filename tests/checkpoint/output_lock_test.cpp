#include "runtime/checkpoint/output_lock.h"

#include <filesystem>
#include <future>
#include <optional>

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "runtime/base/file.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;
using checkpoint::OutputLock;
using checkpoint::refuse_locked_output;

TEST_CASE("OutputLock: one job at a time writes to a directory", "[checkpoint]") {
  const TempDir folder;
  const fs::path file = folder.path() / "job.lock";
  const auto take = [&] {
    const OutputLock lock(folder.path(), "b");
  };
  const auto look = [&] {
    refuse_locked_output(folder.path());
  };
  look();
  CHECK(fs::is_empty(folder.path()));
  {
    const OutputLock lock(folder.path(), "a");
    CHECK_THAT(read_text_file(file, 4096), Catch::StartsWith("job a, process "));
    CHECK_THAT(error_of(take), Contains("job a, process ") && Contains(" writes there; wait"));
    CHECK_THAT(error_of(look), Contains("job a, process ") && Contains(" writes there; wait"));
  }
  CHECK(fs::is_empty(folder.path()));
  take();
  refuse_locked_output(folder.path() / "missing");
}

TEST_CASE("OutputLock: what a killed process leaves locks nothing", "[checkpoint]") {
  const TempDir folder;
  const pid_t child = ::fork();
  if (child == 0) {
    const OutputLock lock(folder.path(), "a");
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  REQUIRE(fs::exists(folder.path() / "job.lock"));
  refuse_locked_output(folder.path());
  const OutputLock lock(folder.path(), "b");
  CHECK_THAT(read_text_file(folder.path() / "job.lock", 4096), Catch::StartsWith("job b, "));
}

TEST_CASE("OutputLock: a job waits for an earlier start of its own", "[checkpoint]") {
  const TempDir folder;
  std::optional<OutputLock> first;
  first.emplace(folder.path(), "a");
  std::promise<void> begun;
  std::future<void> second = std::async(std::launch::async, [&] {
    begun.set_value();
    const OutputLock lock(folder.path(), "a");
  });
  begun.get_future().wait();
  CHECK(second.wait_for(std::chrono::milliseconds(1500)) == std::future_status::timeout);
  first.reset();
  CHECK(error_of([&] { second.get(); }).empty());
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("OutputLock: no link is followed and nothing but a file is taken", "[checkpoint]") {
  const TempDir folder;
  const fs::path other = folder.path() / "other";
  write_text_file(other, "kept");
  fs::create_symlink(other, folder.path() / "job.lock");
  CHECK_FALSE(error_of([&] { const OutputLock lock(folder.path(), "a"); }).empty());
  CHECK(read_text_file(other, 4096) == "kept");
  fs::remove(folder.path() / "job.lock");
  fs::create_directory(folder.path() / "job.lock");
  CHECK_FALSE(error_of([&] { const OutputLock lock(folder.path(), "a"); }).empty());
}

}  // namespace
}  // namespace dstrain::test
