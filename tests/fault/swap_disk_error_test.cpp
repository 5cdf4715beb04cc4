// A disk that cannot read any more: a file system in a file, of which nothing is left.
#include <cstdlib>

#include <unistd.h>

#include <fmt/format.h>

#include "tests/fault/swapping_run.h"
#include "tests/offload/io_support.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

namespace fs = std::filesystem;

/// In a child: a file system in `file`, past the caches, at `directory`. Returns why not, or "".
std::string mount_file(const fs::path& file, const fs::path& directory) {
  if (::geteuid() != 0) return "skip: only root has loop devices";
  const std::string refused = test::mount_for_me("tmpfs", directory.string(), "size=1m");
  if (!refused.empty()) return refused;
  const std::string commands = fmt::format(
      "exec 2>/dev/null; truncate -s 64M {0} && mkfs.ext4 -q -O ^has_journal {0} && "
      "loop=$(losetup --find --show --direct-io=on {0}) || exit 1; "
      "grep -q 1 /sys/block/${{loop#/dev/}}/loop/dio && mount $loop {1}; mounted=$?; "
      "losetup --detach $loop; exit $mounted",  // once it is not mounted any more
      file.string(), directory.string());
  return std::system(commands.c_str()) == 0 ? "" : "skip: no file can be mounted here";
}

}  // namespace

TEST_CASE("SwapDiskError: a disk that cannot be read ends the job", "[fault][offload]") {
  const char* const io = GENERATE("auto", "threads");
  const test::TempDir folder;
  const fs::path file = folder.path() / "file";
  const fs::path disk = fs::canonical(folder.path()) / "disk";
  fs::create_directory(disk);
  const std::string told = test::in_child([&]() -> std::string {
    const std::string refused = mount_file(file, disk);
    if (!refused.empty()) return refused;
    test::Launch launch(test::swapping_run(disk).endless(folder.path() / "out"),
                        {.env = {{"OMP_NUM_THREADS", "1"}, {"DSTRAIN_IO", io}},
                         .directory = test::golden_folder.string()});
    if (!launch.wait_for_output("step 3/")) return "no step: " + launch.err();
    fs::resize_file(file, 0);
    const int status = launch.wait();
    return json{{"status", status}, {"err", launch.err()}, {"clean", launch.nothing_left()}}.dump();
  });
  if (told.starts_with("skip")) test::skip(told);
  CAPTURE(io, told);
  REQUIRE(told.starts_with("{"));
  const json run = json::parse(told);
  CHECK(run.at("status") == 1);
  CHECK(run.at("clean") == true);
  // A write that comes first makes the file long again: what lies before it then reads as zeros.
  const std::string swap_file = "dstrain: error: swap file in " + disk.string() + ": ";
  CHECK_THAT(
      run.at("err").get<std::string>(),
      (ContainsSubstring(swap_file + "read ") && ContainsSubstring(": Input/output error")) ||
          (ContainsSubstring(swap_file) && ContainsSubstring("are not what was written there")));
}
