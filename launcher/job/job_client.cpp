#include "launcher/job/job_client.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include <poll.h>
#include <sys/socket.h>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/socket.h"

namespace dstrain::launcher {
namespace {

constexpr double answer_seconds = 3;  // with a launcher that is stopped, say
constexpr double forever_seconds = 1e9;

/// None at the deadline, or when the launcher goes away.
std::optional<std::string> exchange(const JobDirectory& directory,
                                    const std::string& job,
                                    const std::string& request,
                                    Deadline deadline) {
  const UniqueFd socket = directory.connect(job, Deadline::after(answer_seconds));
  const std::string line = request + "\n";
  if (!socket || ::send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL) < 0) return {};
  std::string answer;
  std::array<char, 1U << 16> buffer;
  while (wait_until_ready(socket.get(), POLLIN, deadline)) {
    const ssize_t got = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return {};
    answer.append(buffer.data(), static_cast<std::size_t>(got));
    if (answer.ends_with('\n')) return answer;
  }
  return {};
}

std::string output_directory_of(const FoundJob& job) {
  const auto json = nlohmann::json::parse(job.status, nullptr, false);
  const auto found = json.is_object() ? json.find("output_dir") : json.end();
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

bool same_directory(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return std::filesystem::equivalent(a, b, ignored);
}

}  // namespace

std::vector<FoundJob> find_jobs() {
  std::vector<FoundJob> found;
  for (JobDirectory& any : JobDirectory::find_all()) {
    const auto directory = std::make_shared<const JobDirectory>(std::move(any));
    for (const std::string& id : directory->jobs()) {
      auto status = exchange(*directory, id, "status", Deadline::after(answer_seconds));
      if (status) found.push_back({id, std::move(*status), directory});
    }
  }
  return found;
}

FoundJob find_job(const std::string& id_or_directory) {
  std::vector<FoundJob> jobs = find_jobs();
  auto found = std::ranges::find(jobs, id_or_directory, &FoundJob::id);
  if (found == jobs.end()) {
    found = std::ranges::find_if(jobs, [&](const FoundJob& job) {
      return same_directory(output_directory_of(job), id_or_directory);
    });
  }
  if (found != jobs.end()) return std::move(*found);
  if (jobs.empty()) fail(ErrorCode::usage, "no job of yours is running on this machine");
  std::vector<std::string> ids;
  std::ranges::transform(jobs, std::back_inserter(ids), &FoundJob::id);
  fail(ErrorCode::usage, "no job runs with the id or the output directory \"{}\"; running jobs: {}",
       id_or_directory, fmt::join(ids, ", "));
}

std::optional<std::string> ask_job(const FoundJob& job, const std::string& request) {
  return exchange(*job.directory, job.id, request, Deadline::after(forever_seconds));
}

}  // namespace dstrain::launcher
