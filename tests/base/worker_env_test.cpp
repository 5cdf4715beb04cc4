#include "runtime/rank/worker_env.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "runtime/os/control_groups.h"
#include "tests/base/rank_environment.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

namespace dstrain {
using test::RankEnvironment;
using test::Variables;

TEST_CASE("WorkerEnv: a process started by hand is rank 0 of 1", "[base][worker_env]") {
  const RankEnvironment environment(Variables{});
  const WorkerEnv worker = read_worker_env();
  CHECK(worker.rank == 0);
  CHECK(worker.world_size == 1);
  CHECK(worker.local_rank == 0);
  CHECK(worker.local_world_size == 1);
  CHECK(worker.master_addr == "127.0.0.1");
  CHECK(worker.master_port == 29500);
  CHECK(worker.token.empty());
  CHECK(worker.timeout_seconds == 600);
  CHECK(worker.device_memory_bytes == 0);
  CHECK(worker.host_memory_bytes == 0);
  CHECK(worker.node_rank == -1);
  CHECK(worker.mpi == MpiKind::none);
  CHECK(worker.loopback_only);
  CHECK(worker.comm == CommKind::automatic);
  CHECK(worker.io == IoKind::automatic);
  CHECK(worker.device == DeviceChoice::automatic);
}

TEST_CASE("WorkerEnv: reads what the launcher sets", "[base][worker_env]") {
  const RankEnvironment environment(Variables{{"RANK", "5"},
                                              {"WORLD_SIZE", "8"},
                                              {"LOCAL_RANK", "1"},
                                              {"LOCAL_WORLD_SIZE", "4"},
                                              {"CROSS_RANK", "1"},
                                              {"DSTRAIN_COMM", "tcp"},
                                              {"DSTRAIN_IO", "threads"},
                                              {"DSTRAIN_DEVICE", "cuda"},
                                              {"MASTER_ADDR", "w0"},
                                              {"MASTER_PORT", "65535"},
                                              {"DSTRAIN_TOKEN", "secret"},
                                              {"DSTRAIN_TIMEOUT", "30"},
                                              {"DSTRAIN_DEVICE_MEMORY", "8589934592"},
                                              {"DSTRAIN_HOST_MEMORY", "68719476736"}});
  const WorkerEnv worker = read_worker_env();
  CHECK(worker.rank == 5);
  CHECK(worker.world_size == 8);
  CHECK(worker.local_rank == 1);
  CHECK(worker.local_world_size == 4);
  CHECK(worker.node_rank == 1);
  CHECK(worker.mpi == MpiKind::none);
  CHECK(worker.comm == CommKind::tcp);
  CHECK(worker.io == IoKind::threads);
  CHECK(worker.device == DeviceChoice::cuda);
  CHECK(worker.master_addr == "w0");
  CHECK(worker.master_port == 65535);
  CHECK(worker.master_ports == 1);
  CHECK(worker.token == "secret");
  CHECK_FALSE(worker.loopback_only);
  CHECK(worker.timeout_seconds == 30);
  CHECK(worker.device_memory_bytes == 8589934592);
  CHECK(worker.host_memory_bytes == 68719476736);
}

TEST_CASE("WorkerEnv: nodes come from the launcher or are equally large", "[base][worker_env]") {
  Variables variables{{"RANK", "5"},       {"WORLD_SIZE", "8"},   {"LOCAL_RANK", "1"},
                      {"CROSS_RANK", "1"}, {"MASTER_ADDR", "w0"}, {"DSTRAIN_TOKEN", "secret"}};
  const auto [local_size, told, nodes] = GENERATE(table<std::string, std::string, std::string>(
      {{"4", "w0*3,w1*5", "w0*3,w1*5"}, {"4", "w0*3", "*4,*4"}, {"2", "", ""}, {"3", "", ""}}));
  variables["LOCAL_WORLD_SIZE"] = local_size;
  variables["DSTRAIN_NODES"] = told;
  const RankEnvironment environment(variables);
  CHECK(encode_rank_nodes(read_worker_env().nodes) == nodes);
}

TEST_CASE("WorkerEnv: a way to communicate that does not exist is refused", "[base][worker_env]") {
  const RankEnvironment environment(Variables{{"DSTRAIN_COMM", "nccl"}});
  CHECK_THROWS_WITH(read_worker_env(),
                    "DSTRAIN_COMM=nccl: use auto, shm, tcp, mpi or hierarchical");
}

TEST_CASE("WorkerEnv: a way to read files that does not exist is refused", "[base][worker_env]") {
  const RankEnvironment environment(Variables{{"DSTRAIN_IO", "aio"}});
  CHECK_THROWS_WITH(read_worker_env(), "DSTRAIN_IO=aio: use auto, uring or threads");
}

TEST_CASE("WorkerEnv: a variable that is no number in range is named", "[base][worker_env]") {
  const auto [name, value, most] = GENERATE(table<const char*, const char*, const char*>(
      {{"RANK", "", "1048576"},
       {"RANK", "two", "1048576"},
       {"RANK", "1.5", "1048576"},
       {"RANK", "-1", "1048576"},
       {"RANK", "+1", "1048576"},
       {"RANK", "1 ", "1048576"},
       {"WORLD_SIZE", "0x2", "1048576"},
       {"WORLD_SIZE", "1048577", "1048576"},
       {"LOCAL_RANK", "99999999999999999999", "1048576"},
       {"LOCAL_WORLD_SIZE", "many", "1048576"},
       {"CROSS_RANK", "a", "1048576"},
       {"MASTER_PORT", "65536", "65535"},
       {"DSTRAIN_TIMEOUT", "10s", "1048576"},
       {"DSTRAIN_DEVICE_MEMORY", "2GiB", "9223372036854775807"},
       {"DSTRAIN_HOST_MEMORY", "64GiB", "9223372036854775807"}}));
  const RankEnvironment environment(Variables{{name, value}});
  CHECK_THROWS_WITH(read_worker_env(), std::string("environment variable ") + name +
                                           " must be a number from 0 to " + most + ", got \"" +
                                           value + "\"");
}

TEST_CASE("WorkerEnv: the device is as typed or as the environment says", "[base][worker_env]") {
  const RankEnvironment environment(Variables{{"DSTRAIN_DEVICE", "cpu"}});
  CHECK(read_device_choice() == DeviceChoice::cpu);
  CHECK(read_device_choice("auto") == DeviceChoice::automatic);
  ::setenv("DSTRAIN_DEVICE", "tpu", 1);
  CHECK(read_device_choice("cuda") == DeviceChoice::cuda);
  CHECK_THROWS_WITH(read_worker_env(), "DSTRAIN_DEVICE=tpu: use auto, cpu or cuda");
  CHECK_THROWS_WITH(read_device_choice("gpu"), "--device=gpu: use auto, cpu or cuda");
}

TEST_CASE("WorkerEnv: contradictory variables are refused", "[base][worker_env]") {
  const Variables variables =
      GENERATE(Variables{{"RANK", "1"}}, Variables{{"WORLD_SIZE", "0"}},
               Variables{{"RANK", "2"}, {"WORLD_SIZE", "2"}},
               Variables{{"WORLD_SIZE", "4"}, {"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}},
               Variables{{"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "0"}},
               Variables{{"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "3"}});
  const RankEnvironment environment(variables);
  CHECK_THROWS_WITH(read_worker_env(), Catch::Matchers::ContainsSubstring("are inconsistent") &&
                                           Catch::Matchers::ContainsSubstring("or unset all four"));
}

TEST_CASE("WorkerEnv: ranks that may be on several nodes need a token", "[base][worker_env]") {
  Variables variables{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "10.1.2.3"}};
  const RankEnvironment environment(variables);
  CHECK_THROWS_WITH(read_worker_env(),
                    Catch::Matchers::ContainsSubstring("DSTRAIN_TOKEN is not set") &&
                        Catch::Matchers::ContainsSubstring("which meet at 10.1.2.3"));
  ::setenv(env::local_world_size, "2", 1);
  CHECK(read_worker_env().loopback_only);  // all are on this one
}

TEST_CASE("WorkerEnv: no port to meet at is refused", "[base][worker_env]") {
  const RankEnvironment environment(Variables{{"MASTER_PORT", "0"}});
  CHECK_THROWS_WITH(read_worker_env(), Catch::Matchers::ContainsSubstring("MASTER_PORT=0"));
}

TEST_CASE("WorkerEnv: ranks of a node share its cores", "[base][worker_env]") {
  WorkerEnv worker;
  worker.local_world_size = 1'000'000;
  CHECK(core_share(worker) == 1);
  worker.local_world_size = 1;
  CHECK(core_share(worker) ==
        cores_within_quota(static_cast<int>(std::thread::hardware_concurrency())));
  ::setenv("SLURM_CPUS_ON_NODE", "1", 1);
  CHECK(core_share(worker) == 1);
  ::unsetenv("SLURM_CPUS_ON_NODE");
}

TEST_CASE("WorkerEnv: kinds of errors have the statuses that users rely on", "[base][worker_env]") {
  const auto [code, expected] =
      GENERATE(table<ErrorCode, int>({{ErrorCode::usage, 2},
                                      {ErrorCode::config, 2},
                                      {ErrorCode::input, 2},
                                      {ErrorCode::remote, 3},
                                      {ErrorCode::timeout, 4},
                                      {ErrorCode::io, 1},
                                      {ErrorCode::out_of_memory, 1},
                                      {ErrorCode::out_of_device_memory, 1},
                                      {ErrorCode::comm, 1},
                                      {ErrorCode::internal, 1}}));
  CHECK(exit_status(code) == expected);
}

TEST_CASE("WorkerEnv: a rank needs its number and the world's size", "[base][worker_env]") {
  const RankEnvironment environment(
      GENERATE(Variables{{"WORLD_SIZE", "2"}}, Variables{{"RANK", "0"}}));
  CHECK_THROWS_WITH(read_worker_env(),
                    Catch::Matchers::ContainsSubstring("a rank needs both; set"));
}

namespace {

/// A control group of this test's own that may use one core, while it lives.
class SmallGroup {
 public:
  SmallGroup() {
    const ControlGroups groups =
        control_groups("cpu", [](const std::string& path) { return kernel_text(path); });
    directory_ = fmt::format("{}/dstrain-test-{}", groups.directories.front(), ::getpid());
    std::error_code ignored;
    made_ = std::filesystem::create_directory(directory_, ignored) &&
            (write("cpu.cfs_quota_us", "100000") || write("cpu.max", "100000 100000"));
  }
  SmallGroup(const SmallGroup&) = delete;
  SmallGroup& operator=(const SmallGroup&) = delete;
  ~SmallGroup() { ::rmdir(directory_.c_str()); }

  [[nodiscard]] bool made() const { return made_; }
  [[nodiscard]] bool enter() const { return write("cgroup.procs", "0"); }

 private:
  [[nodiscard]] bool write(const char* file, const char* text) const {
    std::ofstream out(directory_ + "/" + file, std::ios::in);
    return static_cast<bool>(out << text << std::flush);
  }
  std::string directory_;
  bool made_ = false;
};

}  // namespace

TEST_CASE("WorkerEnv: ranks share no more cores than a quota leaves", "[base][worker_env]") {
  const SmallGroup group;
  if (!group.made() || std::thread::hardware_concurrency() < 2) {
    test::skip("needs a control group that this user may make, and two cores");
  }
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (!group.enter()) ::_exit(100);
    ::_exit(10 * usable_cores() + core_share({}));
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 11);
}

}  // namespace dstrain
