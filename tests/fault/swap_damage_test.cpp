// What a rank has swapped out is changed behind its back.
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/base/unique_handle.h"
#include "runtime/os/fd_io.h"
#include "tests/fault/swapping_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;

namespace {

namespace fs = std::filesystem;

/// The swap files of a process, the larger first: states, then parameters.
std::vector<fs::path> swap_files(pid_t pid, const fs::path& disk) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", pid))) {
    std::error_code ignored;
    if (fs::read_symlink(entry, ignored).string().starts_with(disk.string() + "/")) {
      files.push_back(entry);
    }
  }
  std::ranges::sort(files, std::greater(),
                    [](const fs::path& file) { return fs::file_size(file); });
  return files;
}

/// One bit of each page. A direct write of the process that was still under way meets pages of the
/// page cache here: the kernel then tells the next fsync of EIO, though the bytes are written.
void damage(const fs::path& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(fd);
  for (std::uint64_t at = 77; at < fs::file_size(file); at += 4096) {
    std::byte byte{};
    read_fully_at(fd.get(), at, {&byte, 1}, file.string());
    byte ^= std::byte{4};
    write_fully_at(fd.get(), at, {&byte, 1}, file.string());
  }
  REQUIRE((::fsync(fd.get()) == 0 || errno == EIO));
}

/// Stops the process, with all of its threads, while `body` runs.
template <class Body>
void while_stopped(test::Launch& launch, pid_t pid, Body&& body) {
  ::kill(pid, SIGSTOP);
  REQUIRE(launch.wait_until([pid] {
    for (const auto& task : fs::directory_iterator(fmt::format("/proc/{}/task", pid))) {
      const std::string stat = test::read_bytes(task.path() / "stat");
      if (stat.find(") T ") == stat.npos) return false;
    }
    return true;
  }));
  body();
  ::kill(pid, SIGCONT);
}

/// Steps that are done for sure: what is printed of them may still be on its way.
int steps_in(const fs::path& output) {
  return test::count_in(test::read_bytes(output / "metrics.jsonl"), "\n");
}

}  // namespace

TEST_CASE("SwapDamage: changed data on the disk ends the job", "[fault][offload]") {
  const auto [file, io, rank, early] = GENERATE(table<std::size_t, const char*, int, bool>(
      {{0, "threads", 0, false}, {1, "auto", 1, false}, {0, "auto", 1, true}}));
  const test::TempDir folder;
  const fs::path disk = fs::canonical(folder.path()) / "disk";
  fs::create_directory(disk);
  const test::ResumableRun run = test::swapping_run(disk, early);
  const fs::path output = folder.path() / "out";
  test::Launch launch(run.endless(output), {.env = {{"OMP_NUM_THREADS", "1"}, {"DSTRAIN_IO", io}},
                                            .directory = test::golden_folder.string()});
  REQUIRE(launch.wait_for_output("step 3/"));
  const pid_t pid = test::rank_pid(launch, rank);
  REQUIRE(pid != 0);
  // What is damaged between its last use and the update is written over unread: then once more.
  int status = -1;
  for (int tries = 0; tries < 30 && status == -1; ++tries) {
    int steps = 0;
    while_stopped(launch, pid, [&, file = file] {
      const std::vector<fs::path> files = swap_files(pid, disk);
      REQUIRE(files.size() == 2);
      damage(files[file]);
      steps = steps_in(output);
    });
    // Until it is found, or a step that began after it has ended.
    if (!launch.wait_until([&] { return steps_in(output) >= steps + 3; })) status = launch.wait();
  }
  CHECK(status == 1);
  CHECK_THAT(launch.err(),
             ContainsSubstring(fmt::format("[rank {}]: dstrain: error: swap file in {}: bytes ",
                                           rank, disk.string())) &&
                 ContainsSubstring("are not what was written there"));
  CHECK(launch.nothing_left());
  CHECK(fs::is_empty(disk));
}
