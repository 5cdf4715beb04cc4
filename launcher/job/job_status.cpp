#include "launcher/job/job_status.h"

#include <algorithm>
#include <array>
#include <ctime>

#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "launcher/process/process.h"
#include "runtime/base/log.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::launcher {
namespace {

using Json = nlohmann::ordered_json;

/// "2026-11-21T22:57:09Z"
std::string utc_time(std::time_t time) {
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

std::string state_of(const JobStatus& status) {
  if (status.stopping) return "stopping";
  if (status.restarting) return "restarting";
  const bool all_started =
      std::ranges::all_of(status.ranks, [](const auto& entry) { return entry.second.pid != 0; });
  return all_started ? "running" : "starting";
}

std::string state_of(const RankStatus& status) {
  if (status.wait_status) return "ended";
  if (status.lost) return "lost";
  return status.pid != 0 ? "running" : "starting";
}

Json rank_json(int rank, const RankStatus& status) {
  Json json{{"rank", rank},
            {"host", status.host},
            {"pid", status.pid == 0 ? Json() : Json(status.pid)},
            {"state", state_of(status)},
            {"status", nullptr},
            {"log", text_or_null(status.log_file)}};
  if (status.wait_status) json["status"] = shell_status(*status.wait_status);
  return json;
}

void add_progress(const JobStatus& status, Json& json) {
  for (const char* const name : {"step", "steps", "loss", "tokens_per_second", "last_checkpoint"}) {
    json[name] = nullptr;
  }
  json["last_checkpoint"] = text_or_null(status.last_checkpoint());
  const std::optional<Progress> progress = status.progress();
  if (!progress) return;
  json["step"] = progress->step;
  if (progress->steps > 0) json["steps"] = progress->steps;
  json["loss"] = progress->loss;
  json["tokens_per_second"] = progress->tokens_per_second;
}

}  // namespace

int status_of_stop(const JobStatus& job, int status) {
  if (job.restarts == 0 || job.saved_step == 0) return status;
  log_warning("stopped during a restart; the last checkpoint is " + job.last_checkpoint());
  return status::stopped_with_checkpoint;
}

JobStatus initial_status(const LaunchJob& job, double now_seconds) {
  JobStatus status{.id = job.id,
                   .program = job.program,
                   .output_directory = job.output_directory,
                   .start = std::time(nullptr),
                   .started_at_seconds = now_seconds,
                   .ranks = {}};
  status.set_ranks(job);
  return status;
}

void JobStatus::set_ranks(const LaunchJob& job) {
  ranks.clear();
  for (const HostTask& task : job.hosts) {
    for (std::size_t i = 0; i < task.spec.ranks.size(); ++i) {
      RankStatus& rank = ranks[task.spec.ranks[i].rank];
      rank.host = task.host;
      if (task.spec.log_files.empty()) continue;
      const std::string& log = task.spec.log_files[i];
      rank.log_file = task.remote ? fmt::format("{}:{}", task.host, log) : log;
    }
  }
}

void JobStatus::begin_restart(int number, std::int64_t newest_checkpoint) {
  restarting = true;
  stopping = false;
  restarts = number;
  saved_step = std::max(saved_step, newest_checkpoint);
  for (auto& [rank, status] : ranks) {
    RankStatus next;
    next.host = std::move(status.host);
    next.log_file = std::move(status.log_file);
    status = std::move(next);
  }
}

bool JobStatus::trains() const {
  return !output_directory.empty() || saved_step > 0 || progress().has_value();
}

std::string JobStatus::last_checkpoint() const {
  if (output_directory.empty() || saved_step == 0) return told_checkpoint;
  return fmt::format("{}/checkpoint-{}", output_directory, saved_step);
}

std::optional<SaveAnswer> JobStatus::take(const RankMessage& message) {
  if (const auto progress = decode_progress(message.text)) {
    ranks.at(message.rank).progress = progress;
    saved_step = std::max(saved_step, progress->saved_step);
    return std::nullopt;
  }
  if (auto awaited = decode_awaited(message.text)) {
    ranks.at(message.rank).awaits = std::move(*awaited);
    return std::nullopt;
  }
  if (const auto unreachable = decode_unreachable(message.text)) {
    const auto found = ranks.find(*unreachable);  // it may be another launcher's
    RankStatus& rank = ranks.at(message.rank);
    if (found != ranks.end() && found->second.host != rank.host) rank.unreachable = unreachable;
    return std::nullopt;
  }
  std::optional<SaveAnswer> answer = decode_save_answer(message.text);
  if (!answer || message.rank != ranks.begin()->first) return std::nullopt;
  if (answer->checkpoint.empty()) return answer;
  saved_step = answer->step;
  told_checkpoint = answer->checkpoint;
  highest_told_step = std::max(highest_told_step, answer->step);
  return answer;
}

std::optional<int> JobStatus::cut_off_rank() const {
  const auto found = std::ranges::find_if(
      ranks, [](const auto& entry) { return entry.second.unreachable.has_value(); });
  return found == ranks.end() ? std::nullopt : std::optional(found->first);
}

std::vector<HostPair> JobStatus::hosts_apart() const {
  std::vector<HostPair> apart;
  for (const auto& [number, rank] : ranks) {
    if (!rank.unreachable) continue;
    const auto [first, second] = std::minmax(number, *rank.unreachable);
    HostPair pair{ranks.at(first).host, ranks.at(second).host};
    if (std::ranges::find(apart, pair) == apart.end()) apart.push_back(std::move(pair));
  }
  return apart;
}

std::int64_t JobStatus::last_step(int rank) const {
  return ranks.at(rank).progress.value_or(Progress()).step;
}

std::optional<Progress> JobStatus::progress() const {
  return ranks.empty() ? std::nullopt : ranks.begin()->second.progress;
}

std::string status_json(const JobStatus& status, double now_seconds) {
  Json json{{"job", status.id},
            {"state", state_of(status)},
            {"program", status.program},
            {"pid", getpid()},
            {"start", utc_time(status.start)},
            {"uptime_seconds", now_seconds - status.started_at_seconds},
            {"restarts", status.restarts},
            {"hosts", Json::array()},
            {"idle", status.idle},
            {"absent", status.absent},
            {"output_dir", text_or_null(status.output_directory)}};
  add_progress(status, json);
  json["ranks"] = Json::array();
  for (const auto& [rank, rank_status] : status.ranks) {
    json["ranks"].push_back(rank_json(rank, rank_status));
    Json& hosts = json["hosts"];
    if (hosts.empty() || hosts.back() != rank_status.host) hosts.push_back(rank_status.host);
  }
  // Paths are bytes, JSON is text: bytes that are not UTF-8 become replacement characters.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace dstrain::launcher
