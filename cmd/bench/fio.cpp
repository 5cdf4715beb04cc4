#include "cmd/bench/fio.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/unique_handle.h"

namespace dstrain::bench {
namespace {

/// What a program prints; nothing when it cannot be started or fails.
std::optional<std::string> output_of(std::vector<std::string> words, int inherited_fd) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  const UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  if (inherited_fd >= 0) {  // onto itself: stays open
    ::posix_spawn_file_actions_adddup2(&actions, inherited_fd, inherited_fd);
  }
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return std::nullopt;
  in.reset();
  std::string text;
  std::array<char, 4096> piece{};
  for (ssize_t size = 0; (size = ::read(out.get(), piece.data(), piece.size())) > 0;) {
    text.append(piece.data(), static_cast<std::size_t>(size));
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return text;
}

std::vector<std::string> command(int fd, const FileTraffic& traffic, const char* engine) {
  const char* const kind = traffic.traffic == Traffic::read    ? "read"
                           : traffic.traffic == Traffic::write ? "write"
                                                               : "rw";
  const Bytes share = traffic.bytes / traffic.threads / traffic.block_size * traffic.block_size;
  return {"fio",
          "--name=bench",
          fmt::format("--filename=/proc/self/fd/{}", fd),
          fmt::format("--ioengine={}", engine),
          fmt::format("--rw={}", kind),
          fmt::format("--bs={}", traffic.block_size),
          fmt::format("--iodepth={}", traffic.queue_depth),
          fmt::format("--numjobs={}", traffic.threads),
          fmt::format("--size={}", share),
          fmt::format("--offset_increment={}", share),
          "--direct=1",
          "--thread",
          "--group_reporting",
          "--output-format=json"};
}

/// The rate of the job's own bytes, times the bytes that were to be moved: fio may do fewer.
std::optional<double> seconds_of(const std::string& report, Bytes bytes) {
  const std::size_t begin = report.find('{');  // warnings may stand before
  if (begin == std::string::npos) return std::nullopt;
  const auto json = nlohmann::json::parse(report.substr(begin), nullptr, false);
  if (json.is_discarded() || !json.contains("jobs")) return std::nullopt;
  double moved = 0;
  double milliseconds = 0;
  for (const char* const direction : {"read", "write"}) {
    const nlohmann::json& part = json["jobs"][0][direction];
    moved += part["io_bytes"].get<double>();
    milliseconds = std::max(milliseconds, part["runtime"].get<double>());
  }
  if (moved == 0 || milliseconds == 0) return std::nullopt;
  return milliseconds / 1e3 * static_cast<double>(bytes) / moved;
}

}  // namespace

bool have_fio() {
  return output_of({"fio", "--version"}, -1).has_value();
}

std::optional<double> time_of_fio(int fd, const FileTraffic& traffic) {
  for (const char* const engine : {"io_uring", "libaio"}) {
    const auto report = output_of(command(fd, traffic, engine), fd);
    if (report) return seconds_of(*report, traffic.bytes);
  }
  return std::nullopt;
}

}  // namespace dstrain::bench
