#include "runtime/os/available_memory.h"

#include <map>

#include "tests/support/catch.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;

namespace {

using Files = std::map<std::string, std::string>;

/// A machine of 32 GiB, 24 of them available, whose control groups say what `more` does.
std::optional<AvailableMemory> available(const Files& more) {
  Files files{{"/proc/meminfo",
               "MemTotal:       33554432 kB\nMemFree:         1048576 kB\n"
               "MemAvailable:   25165824 kB\nCached:         20971520 kB\n"}};
  files.insert(more.begin(), more.end());
  return available_memory([&](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    return found == files.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string gib(int n) {
  return std::to_string(n * gibibyte) + "\n";
}

}  // namespace

TEST_CASE("Available memory: without a control group it is the machine's", "[base]") {
  const Files free{{"/proc/self/cgroup", "0::/user.slice/job\n"},
                   {"/sys/fs/cgroup/user.slice/job/memory.max", "max\n"},
                   {"/sys/fs/cgroup/user.slice/memory.max", gib(64)}};
  const Files unlimited_v1{{"/proc/self/cgroup", "5:memory:/\n"},
                           {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
                           {"/sys/fs/cgroup/memory/memory.usage_in_bytes", gib(30)}};
  for (const Files& files : {Files{}, free, unlimited_v1}) {
    const auto memory = available(files);
    REQUIRE(memory);
    CHECK(memory->bytes == 24 * gibibyte);
    CHECK(memory->reason == "24.0 GiB of this machine's 32.0 GiB are available");
  }
}

TEST_CASE("Available memory: a control group leaves its limit minus its usage", "[base]") {
  const std::string stat = "anon 1\nfile 9\ninactive_file " + gib(1) + "active_file " + gib(2);
  const auto memory = available({{"/proc/self/cgroup", "0::/job\n"},
                                 {"/sys/fs/cgroup/job/memory.max", gib(8)},
                                 {"/sys/fs/cgroup/job/memory.current", gib(5)},
                                 {"/sys/fs/cgroup/job/memory.stat", stat}});
  REQUIRE(memory);
  CHECK(memory->bytes == 6 * gibibyte);  // page cache is dropped when memory is wanted
  CHECK(memory->reason == "the control group /sys/fs/cgroup/job leaves 6.00 GiB of 8.00 GiB");
}

TEST_CASE("Available memory: parent groups and version 1 groups count", "[base]") {
  const Files above{{"/proc/self/cgroup", "0::/slurm/job_7/step_0\n"},
                    {"/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max\n"},
                    {"/sys/fs/cgroup/slurm/job_7/memory.max", gib(4)},
                    {"/sys/fs/cgroup/slurm/job_7/memory.current", gib(1)},
                    {"/sys/fs/cgroup/slurm/memory.max", gib(16)}};
  const Files version_1{
      {"/proc/self/cgroup", "9:cpu,cpuacct:/a\n8:memory:/docker/x\n0::/docker/x\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", gib(4)},  // as seen within a container
      {"/sys/fs/cgroup/memory/memory.usage_in_bytes", gib(2)},
      {"/sys/fs/cgroup/memory/memory.stat",
       "inactive_file 7\ntotal_inactive_file " + gib(1) + "total_active_file 0\n"}};
  for (const Files& files : {above, version_1}) {
    const auto memory = available(files);
    REQUIRE(memory);
    CHECK(memory->bytes == 3 * gibibyte);
  }
  // A group that allows more than the machine has left.
  const auto machine = available({{"/proc/self/cgroup", "0::/job\n"},
                                  {"/sys/fs/cgroup/job/memory.max", gib(30)},
                                  {"/sys/fs/cgroup/job/memory.current", gib(1)}});
  CHECK(machine->bytes == 24 * gibibyte);
}

TEST_CASE("Available memory: a group over its limit leaves nothing", "[base]") {
  const auto memory = available({{"/proc/self/cgroup", "0::/\n"},
                                 {"/sys/fs/cgroup/memory.max", gib(1)},
                                 {"/sys/fs/cgroup/memory.current", gib(2)}});
  REQUIRE(memory);
  CHECK(memory->bytes == 0);
}

TEST_CASE("Available memory: without files of the kernel there is no limit", "[base]") {
  CHECK_FALSE(
      available_memory([](const std::string& /*path*/) { return std::optional<std::string>(); }));
}

TEST_CASE("Control groups: the smallest CPU quota of a group and its parents counts", "[base]") {
  const auto cores = [](const Files& files) {
    return quota_cores([&](const std::string& path) -> std::optional<std::string> {
      const auto found = files.find(path);
      return found == files.end() ? std::nullopt : std::optional(found->second);
    });
  };
  const std::string own = "/sys/fs/cgroup/a/b/cpu.max";
  const Files group{{"/proc/self/cgroup", "0::/a/b\n"}};
  const auto with = [&](const Files& more) {
    Files files = group;
    files.insert(more.begin(), more.end());
    return cores(files);
  };
  CHECK(with({{own, "150000 100000\n"}}) == 1.5);
  CHECK(with({{own, "max 100000\n"}, {"/sys/fs/cgroup/a/cpu.max", "200000 100000\n"}}) == 2);
  CHECK(with({{own, "400000 100000\n"}, {"/sys/fs/cgroup/a/cpu.max", "50000 100000\n"}}) == 0.5);
  for (const char* const text : {"max 100000", "-1 100000", "100 0", "", "5", "x y"}) {
    CAPTURE(text);
    CHECK(with({{own, text}}) == std::nullopt);
  }
  CHECK(cores({{"/proc/self/cgroup", "4:cpu,cpuacct:/docker/x\n"},
               {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n"},
               {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}}) == 3);
  CHECK(cores({{"/proc/self/cgroup", "4:cpu,cpuacct:/x\n"},
               {"/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n"},
               {"/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n"}}) == std::nullopt);
}
