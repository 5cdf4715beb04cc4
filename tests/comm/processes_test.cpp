#include <array>
#include <csignal>
#include <string>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "runtime/base/socket.h"
#include "runtime/base/worker_env.h"

using namespace dstrain;
using Catch::Matchers::Contains;

/// Ranks that are processes of their own.
namespace {

int free_port() {
  Result<UniqueFd> listener = listen_tcp({"127.0.0.1", 0});
  return bound_port(listener.value().get());
}

struct Job {
  int world = 1;
  int port = 0;
  std::string mode;
  int timeout_seconds = 60;
};

/// One process running comm_rank, ended at the latest at the end of the scope.
class RankProcess {
 public:
  RankProcess(const Job& job, int rank) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    output_ = UniqueFd(ends[0]);
    const UniqueFd input(ends[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input.get(), STDOUT_FILENO);
    std::vector<std::string> environment{fmt::format("{}={}", env::rank, rank),
                                         fmt::format("{}={}", env::local_rank, rank),
                                         fmt::format("{}={}", env::world_size, job.world),
                                         fmt::format("{}=127.0.0.1", env::master_addr),
                                         fmt::format("{}={}", env::master_port, job.port),
                                         fmt::format("{}=secret", env::token),
                                         fmt::format("{}={}", env::timeout, job.timeout_seconds)};
    std::vector<char*> variables;
    for (std::string& variable : environment) variables.push_back(variable.data());
    variables.push_back(nullptr);
    std::string program = DSTRAIN_COMM_RANK;
    std::string mode = job.mode;
    std::array<char*, 3> arguments{program.data(), mode.data(), nullptr};
    const int error = ::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments.data(),
                                    variables.data());
    posix_spawn_file_actions_destroy(&actions);
    REQUIRE(error == 0);
  }
  RankProcess(RankProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), output_(std::move(other.output_)) {}
  RankProcess& operator=(RankProcess&&) = delete;
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;
  ~RankProcess() {
    if (pid_ == 0) return;
    kill();
    wait();
  }

  [[nodiscard]] int pid() const { return pid_; }
  void kill() const { ::kill(pid_, SIGKILL); }

  /// The next line it prints; empty at its end.
  std::string read_line() {
    std::string line;
    char letter = 0;
    while (::read(output_.get(), &letter, 1) == 1 && letter != '\n') line += letter;
    return line;
  }

  /// Its exit status, or minus the signal that ended it.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
  UniqueFd output_;
};

std::vector<RankProcess> start(const Job& job) {
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < job.world; ++rank) ranks.emplace_back(job, rank);
  return ranks;
}

}  // namespace

TEST_CASE("Processes: meet and add up and split", "[comm]") {
  const int world = GENERATE(1, 2, 3);
  auto ranks = start({.world = world, .port = free_port(), .mode = "once"});
  double total = 0;
  for (int i = 0; i < 300'000; ++i) total += (i % 97 + 1) * world * (world + 1) / 2;
  for (int rank = 0; rank < world; ++rank) {
    RankProcess& process = ranks[static_cast<std::size_t>(rank)];
    const int half = (world + 1 - rank % 2) / 2;
    CHECK(process.read_line() == fmt::format("total {:.0f} half {}", total, half));
    CHECK(process.wait() == status::done);
  }
}

TEST_CASE("Processes: a killed rank is named by the others", "[comm]") {
  const std::string mode = GENERATE("forever", "forever_unstaged");
  auto ranks = start({.world = 3, .port = free_port(), .mode = mode});
  for (RankProcess& process : ranks) REQUIRE(process.read_line() == "running");
  const int pid = ranks[2].pid();
  ranks[2].kill();  // it stays a zombie until waited for: that is noticed as well
  const std::string gone = fmt::format("rank 2 (pid {}) is gone", pid);
  for (const std::size_t rank : {0U, 1U}) {
    CHECK_THAT(ranks[rank].read_line(), Contains(gone));
    CHECK(ranks[rank].wait() == status::failed);
  }
  CHECK(ranks[2].wait() == -SIGKILL);
}

TEST_CASE("Processes: a rank that never comes is named", "[comm]") {
  const Job job{.world = 3, .port = free_port(), .mode = "once", .timeout_seconds = 1};
  RankProcess first(job, 0);
  CHECK(first.read_line() == fmt::format("rendezvous timed out after 1 s at 127.0.0.1:{}: waiting "
                                         "for ranks 1 2",
                                         job.port));
  CHECK(first.wait() == status::timed_out);
}
