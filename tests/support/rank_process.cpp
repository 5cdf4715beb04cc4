#include "tests/support/rank_process.h"

#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/os/socket.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::test {
namespace {

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

int free_port() {
  Result<UniqueFd> listener = listen_tcp({"127.0.0.1", 0});
  return bound_port(listener.value().get());
}

std::vector<std::string> environment_of(const RankPlace& place) {
  return {"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
          "OMP_NUM_THREADS=1",
          fmt::format("{}={}", env::rank, place.rank),
          fmt::format("{}={}", env::world_size, place.world),
          fmt::format("{}={}", env::local_rank, place.local_rank),
          fmt::format("{}={}", env::local_world_size, place.local_world),
          fmt::format("{}={}", env::cross_rank, place.node),
          fmt::format("{}={}", env::master_addr, place.address),
          fmt::format("{}={}", env::master_port, place.port),
          fmt::format("{}=secret", env::token),
          fmt::format("{}={}", env::timeout, place.timeout_seconds)};
}

std::vector<RankPlace> places_of(const std::vector<int>& ranks_per_node) {
  std::vector<RankPlace> places;
  for (std::size_t node = 0; node < ranks_per_node.size(); ++node) {
    for (int i = 0; i < ranks_per_node[node]; ++i) {
      places.push_back({.rank = static_cast<int>(places.size()),
                        .local_rank = i,
                        .local_world = ranks_per_node[node],
                        .node = static_cast<int>(node)});
    }
  }
  for (RankPlace& place : places) place.world = static_cast<int>(places.size());
  return places;
}

RankProcess::RankProcess(Program program) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail_errno(errno, "pipe");
  output_ = UniqueFd(ends[0]);
  const UniqueFd input(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, input.get(), STDERR_FILENO);
  const int error =
      ::posix_spawn(&pid_, program.arguments.front().c_str(), &actions, nullptr,
                    pointers_to(program.arguments).data(), pointers_to(program.environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail_errno(error, "starting " + program.arguments.front());
}

RankProcess::~RankProcess() {
  if (pid_ == 0) return;
  kill();
  wait();
}

void RankProcess::kill() const {
  ::kill(pid_, SIGKILL);
}

std::string RankProcess::read_line() {
  std::string line;
  char letter = 0;
  while (::read(output_.get(), &letter, 1) == 1 && letter != '\n') line += letter;
  return line;
}

std::string RankProcess::read_all() {
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t got = 0; (got = ::read(output_.get(), part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  return text;
}

int RankProcess::wait() {
  int status = 0;
  ::waitpid(std::exchange(pid_, 0), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace dstrain::test
