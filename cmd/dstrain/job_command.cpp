#include <cmath>
#include <span>
#include <string>
#include <string_view>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cmd/dstrain/commands.h"
#include "launcher/job/job_client.h"
#include "runtime/base/error.h"
#include "runtime/base/worker_env.h"

namespace dstrain::cmd {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* job_help =
    "JOB: the id that the launcher prints at the start, or the output directory of a training.\n"
    "Only jobs of this user whose launcher runs on this machine are found.\n";

std::string or_nothing(const Json& json, const char* name) {
  const Json& value = json.at(name);
  if (value.is_null()) return "-";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// "1:02:03"
std::string duration(double seconds) {
  const auto whole = static_cast<long long>(seconds);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

/// "step 12 of 100, loss 3.2142, 1234 tokens/s, last checkpoint /out/checkpoint-10"
std::string progress_text(const Json& job) {
  if (job.at("step").is_null()) return "no step yet";
  const double loss = job.at("loss").is_null() ? NAN : job.at("loss").get<double>();
  return fmt::format("step {} of {}, loss {:.4f}, {:.0f} tokens/s, last checkpoint {}",
                     job.at("step").dump(), job.at("steps").dump(), loss,
                     job.at("tokens_per_second").get<double>(), or_nothing(job, "last_checkpoint"));
}

std::string head_line(const Json& job) {
  return fmt::format("job {}: {}, {} {} since {}, {} rank(s)", or_nothing(job, "job"),
                     or_nothing(job, "program"), or_nothing(job, "state"),
                     duration(job.at("uptime_seconds").get<double>()), or_nothing(job, "start"),
                     job.at("ranks").size());
}

void print_job(const Json& job) {
  fmt::print("{}\n  launcher: pid {}\n", head_line(job), job.at("pid").dump());
  if (!job.at("output_dir").is_null()) {
    fmt::print("  {}\n  output: {}\n", progress_text(job), or_nothing(job, "output_dir"));
  }
  for (const Json& rank : job.at("ranks")) {
    const bool ended = !rank.at("status").is_null();
    fmt::print("  rank {} on {}, pid {}: {}{}{}\n", rank.at("rank").dump(),
               or_nothing(rank, "host"), or_nothing(rank, "pid"), or_nothing(rank, "state"),
               ended ? " with status " + rank.at("status").dump() : "",
               rank.at("log").is_null() ? "" : ", log " + or_nothing(rank, "log"));
  }
}

void print_list(const std::vector<launcher::FoundJob>& jobs) {
  if (jobs.empty()) fmt::print("no job of yours is running on this machine\n");
  for (const launcher::FoundJob& found : jobs) {
    const Json job = Json::parse(found.status);
    fmt::print("{}\n", head_line(job));
    if (!job.at("output_dir").is_null()) fmt::print("  {}\n", progress_text(job));
  }
}

/// One JSON object on each line of the launchers, as one array.
void print_list_json(const std::vector<launcher::FoundJob>& jobs) {
  Json list = Json::array();
  for (const launcher::FoundJob& job : jobs) list.push_back(Json::parse(job.status));
  fmt::print("{}\n", list.dump());
}

bool wants_help(std::span<const std::string> arguments, std::string_view usage) {
  for (const std::string& word : arguments) {
    if (word != "--help" && word != "-h") continue;
    fmt::print("{}{}", usage, job_help);
    return true;
  }
  return false;
}

/// Asks a job for something; the answer, or an error of the launcher as one of ours.
Json ask(std::span<const std::string> arguments, const std::string& request) {
  if (arguments.size() != 1) fail(ErrorCode::usage, "usage: dstrain {} JOB", request);
  const launcher::FoundJob job = launcher::find_job(arguments.front());
  const auto line = launcher::ask_job(job, request);
  if (!line) {
    fail(ErrorCode::aborted, "job {} ended without an answer: its launcher is gone", job.id);
  }
  Json answer = Json::parse(*line);
  if (answer.contains("error")) {
    fail(ErrorCode::aborted, "{}", answer.at("error").get<std::string>());
  }
  answer["job"] = job.id;
  return answer;
}

}  // namespace

int status_command(std::span<const std::string> arguments) {
  if (wants_help(arguments,
                 "dstrain status [JOB] [--json]: what a running job does, or all of yours.\n")) {
    return status::done;
  }
  bool json = false;
  std::vector<std::string> names;
  for (const std::string& word : arguments) {
    if (word == "--json") {
      json = true;
    } else {
      names.push_back(word);
    }
  }
  if (names.size() > 1 || (names.size() == 1 && names.front().starts_with('-'))) {
    fail(ErrorCode::usage, "usage: dstrain status [JOB] [--json]");
  }
  if (names.empty()) {
    const auto jobs = launcher::find_jobs();
    json ? print_list_json(jobs) : print_list(jobs);
    return status::done;
  }
  const launcher::FoundJob job = launcher::find_job(names.front());
  if (json) {
    fmt::print("{}", job.status);
  } else {
    print_job(Json::parse(job.status));
  }
  return status::done;
}

int save_command(std::span<const std::string> arguments) {
  if (wants_help(arguments,
                 "dstrain save JOB: saves a checkpoint at the next step, waits until it is whole\n"
                 "and prints its path; training goes on.\n")) {
    return status::done;
  }
  fmt::print("{}\n", ask(arguments, "save").at("checkpoint").get<std::string>());
  return status::done;
}

int stop_command(std::span<const std::string> arguments) {
  if (wants_help(
          arguments,
          "dstrain stop JOB: stops a job as Ctrl-C would, a training with a checkpoint, and\n"
          "waits until nothing of it is left.\n")) {
    return status::done;
  }
  const Json answer = ask(arguments, "stop");
  fmt::print("job {} has ended with status {}\n", answer.at("job").get<std::string>(),
             answer.at("status").dump());
  return status::done;
}

}  // namespace dstrain::cmd
