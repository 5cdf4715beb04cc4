#include "launcher/job/job_client.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <iterator>

#include <poll.h>
#include <sys/socket.h>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "launcher/process/proc_thread.h"
#include "runtime/base/error.h"
#include "runtime/os/socket.h"

namespace dstrain::launcher {
namespace {

constexpr double answer_seconds = 3;
constexpr double forever_seconds = 1e9;

/// The launcher's line; neither member is set if it closed the connection. `silence` says why
/// nothing came before the deadline.
struct Reply {
  std::optional<std::string> line;
  std::string silence;
};

bool is_stopped(pid_t launcher) {
  return launcher != 0 && thread_state(launcher, launcher) == 'T';
}

std::string silence_of(pid_t launcher) {
  if (launcher == 0) return "its launcher does not answer";
  return fmt::format(
      "its launcher (pid {}) {}", launcher,
      is_stopped(launcher) ? "is stopped; resume it with fg or kill -CONT" : "does not answer");
}

Reply exchange(const JobDirectory& directory,
               const std::string& job,
               const std::string& request,
               Deadline deadline) {
  const UniqueFd socket = directory.connect(job, Deadline::after(answer_seconds));
  if (!socket) {  // dead ones are swept; of one that has no room for us the name stays
    const std::vector<std::string> jobs = directory.jobs();
    return {{}, std::ranges::count(jobs, job) == 0 ? "" : silence_of(0)};
  }
  const pid_t launcher = peer_process(socket.get());
  if (is_stopped(launcher)) return {{}, silence_of(launcher)};
  const std::string line = request + "\n";
  // A client that is turned away finds the answer before it has sent its request.
  const bool sent = ::send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL) >= 0;
  if (!sent && errno != EPIPE && errno != ECONNRESET) return {};
  std::string answer;
  std::array<char, 1U << 16> buffer;
  while (wait_until_ready(socket.get(), POLLIN, deadline)) {
    const ssize_t got = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return {};
    answer.append(buffer.data(), static_cast<std::size_t>(got));
    if (answer.ends_with('\n')) return {std::move(answer), ""};
  }
  return {{}, silence_of(launcher)};
}

/// Of a training, or where a program has saved.
std::string output_directory_of(const FoundJob& job) {
  const auto json = nlohmann::json::parse(job.status, nullptr, false);
  const auto text = [&](const char* key) {
    const auto found = json.is_object() ? json.find(key) : json.end();
    return found != json.end() && found->is_string() ? found->get<std::string>() : "";
  };
  const std::string directory = text("output_dir");
  if (!directory.empty()) return directory;
  return std::filesystem::path(text("last_checkpoint")).parent_path().string();
}

bool same_directory(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (a.empty() || b.empty()) return false;
  if (fs::equivalent(a, b, ignored)) return true;
  // It may not be there yet, or on other hosts alone.
  const auto whole = [&](const fs::path& path) {
    return fs::weakly_canonical(fs::absolute(path), ignored) / "";
  };
  return whole(a) == whole(b);
}

[[noreturn]] void refuse(const std::string& name, const FoundJobs& jobs) {
  if (!jobs.silent.empty()) {
    std::vector<std::string> lines;
    for (const SilentJob& job : jobs.silent) {
      lines.push_back(fmt::format("job {}: {}", job.id, job.reason));
    }
    fail(ErrorCode::aborted, "{}", fmt::join(lines, "\n"));
  }
  if (jobs.answering.empty()) fail(ErrorCode::usage, "no job of yours is running on this machine");
  std::vector<std::string> ids;
  std::ranges::transform(jobs.answering, std::back_inserter(ids), &FoundJob::id);
  fail(ErrorCode::usage, "no job runs with the id or the output directory \"{}\"; running jobs: {}",
       name, fmt::join(ids, ", "));
}

}  // namespace

FoundJobs find_jobs() {
  FoundJobs found;
  for (JobDirectory& any : JobDirectory::find_all()) {
    const auto directory = std::make_shared<const JobDirectory>(std::move(any));
    for (const std::string& id : directory->jobs()) {
      Reply status = exchange(*directory, id, "status", Deadline::after(answer_seconds));
      if (status.line) found.answering.push_back({id, std::move(*status.line), directory});
      if (!status.silence.empty()) found.silent.push_back({id, std::move(status.silence)});
    }
  }
  return found;
}

FoundJob find_job(const std::string& id_or_directory) {
  FoundJobs jobs = find_jobs();
  std::vector<FoundJob> matches;
  std::ranges::copy_if(jobs.answering, std::back_inserter(matches),
                       [&](const FoundJob& job) { return job.id == id_or_directory; });
  if (!matches.empty()) return std::move(matches.front());
  std::erase_if(jobs.silent, [&](const SilentJob& job) {
    // The output directory of a silent job is not known: this may be its.
    return job.id != id_or_directory && !std::filesystem::is_directory(id_or_directory);
  });
  std::ranges::copy_if(jobs.answering, std::back_inserter(matches), [&](const FoundJob& job) {
    return same_directory(output_directory_of(job), id_or_directory);
  });
  if (matches.empty()) refuse(id_or_directory, jobs);
  if (matches.size() > 1) {
    fail(ErrorCode::usage, "{}: jobs {} and {} both write there; give the id of one",
         id_or_directory, matches[0].id, matches[1].id);
  }
  return std::move(matches.front());
}

std::optional<std::string> ask_job(const FoundJob& job, const std::string& request) {
  return exchange(*job.directory, job.id, request, Deadline::after(forever_seconds)).line;
}

}  // namespace dstrain::launcher
