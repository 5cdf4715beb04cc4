#include "tests/launcher/fake_machine.h"

#include <sys/resource.h>

namespace dstrain::test {
namespace {

constexpr Bytes disk_bytes = 500 * gibibyte;

constexpr const char* cpuinfo =
    "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: A Processor\n"
    "flags\t\t: fpu fma avx2 avx512f avx512bw avx512_bf16\n\nprocessor\t: 1\n";
constexpr const char* meminfo =
    "MemTotal:       65536000 kB\nMemFree:        1000 kB\nMemAvailable:   60000000 kB\n"
    "SwapTotal:      1000000 kB\nSwapFree:       1000000 kB\n";

}  // namespace

FakeMachine::FakeMachine() {
  put_file("/proc/cpuinfo", cpuinfo);
  put_file("/proc/meminfo", meminfo);
  put_file("/proc/self/cgroup", "0::/user.slice\n");
  put_file("/sys/fs/cgroup/user.slice/memory.max", "max\n");
  put_file("/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
  put_file("/sys/fs/cgroup/user.slice/pids.max", "60000\n");
  put_file("/proc/sys/vm/overcommit_memory", "0\n");
  put_file("/proc/sys/kernel/io_uring_disabled", "0\n");
  put_file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  put_file("/sys/kernel/mm/transparent_hugepage/shmem_enabled",
           "always within_size [advise] never deny force\n");
  put_file("/etc/hosts", "127.0.0.1 localhost\n::1 localhost ip6-localhost\n10.0.0.10 w0\n");
  put_file("/opt/dstrain/bin/dstraind", "", 0755);
  put_file("/opt/dstrain/bin/libdstrain_ssh.so", "");
  put_file("/opt/dstrain/bin/libdstrain_mpi_openmpi.so", "");
  put_file("/opt/dstrain/bin/libdstrain_tokenizers.so", "");
  put_directory("/home/user");
  put_directory("/home/user/.ssh", 0700);
  put_file("/home/user/.ssh/id_ed25519", "key", 0600);
  put_file("/home/user/.ssh/known_hosts", "w1,10.0.0.11 ssh-ed25519 AAAA\n");
  put_directory("/run/user/1000", 0700);
  put_directory("/run/user/1000/dstrain", 0700);
  variables = {
      {"HOME", "/home/user"}, {"LANG", "en_US.UTF-8"}, {"XDG_RUNTIME_DIR", "/run/user/1000"}};
  for (const char* path : {"/home/user/run", "/tmp", "/dev/shm"}) {
    disks[path] = {disk_bytes, disk_bytes / 2, "ext4", false};
    put_directory(path);
  }
  programs = {{"mpirun", "/usr/bin/mpirun"}, {"mpirun.openmpi", "/usr/bin/mpirun.openmpi"}};
  runs["/opt/dstrain/bin/dstraind --version"] = {true, 0, "dstraind 1.2.3\n"};
  runs["mpirun.openmpi --version"] = {true, 0, "mpirun.real (OpenRTE) 4.1.4\n"};
  limits[RLIMIT_CORE] = {0, launcher::doctor::Limit::unlimited};
  addresses = {{"w0", {"10.0.0.10"}}, {"w1", {"10.0.0.11"}}, {"localhost", {"127.0.0.1"}}};
}

void FakeMachine::put_process(int pid,
                              const std::string& name,
                              int parent,
                              const std::string& environment) {
  const std::string directory = fmt::format("/proc/{}", pid);
  put_directory(directory);
  put_file(directory + "/comm", name + "\n");
  put_file(directory + "/status", fmt::format("Name:\t{}\nPPid:\t{}\n", name, parent));
  put_file(directory + "/environ", environment);
}

std::vector<std::string> FakeMachine::names(const std::string& directory) const {
  std::vector<std::string> found;
  for (const auto& [path, entry] : files) {
    const std::size_t slash = path.rfind('/');
    if (path.substr(0, slash) == directory) found.push_back(path.substr(slash + 1));
  }
  return found;
}

}  // namespace dstrain::test
