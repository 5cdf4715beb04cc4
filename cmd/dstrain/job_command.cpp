#include <cmath>
#include <optional>
#include <span>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cmd/dstrain/commands.h"
#include "cmd/dstrain/tool_options.h"
#include "launcher/job/job_client.h"
#include "runtime/base/error.h"
#include "runtime/base/units.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::cmd {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* job_help =
    "\nJOB: the id that the launcher prints at the start, or the output directory of a "
    "training.\nFinds only jobs of this user whose launcher runs on this machine.";

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

/// "step 12 of 100, loss 3.2142, 1234 tokens/s, last checkpoint /out/checkpoint-10"; steps count
/// since the last restart, and a program's number of steps is not known.
std::string progress_text(const Json& job) {
  const std::string saved = or_nothing(job, "last_checkpoint");
  if (job.at("step").is_null()) {
    return fmt::format("no step yet{}, last checkpoint {}",
                       job.at("restarts") == 0 ? "" : " since the restart", saved);
  }
  const double loss = job.at("loss").is_null() ? NAN : job.at("loss").get<double>();
  const Json& steps = job.at("steps");
  return fmt::format("step {}{}, loss {:.4f}, {:.0f} tokens/s, last checkpoint {}",
                     job.at("step").dump(), steps.is_null() ? "" : " of " + steps.dump(), loss,
                     job.at("tokens_per_second").get<double>(), saved);
}

/// Or is a program that has taken a step of an engine.
bool trains(const Json& job) {
  return !job.at("output_dir").is_null() || !job.at("step").is_null() ||
         !job.at("last_checkpoint").is_null();
}

std::string head_line(const Json& job) {
  return fmt::format("job {}: {}, {} {} since {}, {}", or_nothing(job, "job"),
                     or_nothing(job, "program"), or_nothing(job, "state"),
                     duration(job.at("uptime_seconds").get<double>()), or_nothing(job, "start"),
                     counted(std::ssize(job.at("ranks")), "rank"));
}

void print_job(const Json& job) {
  fmt::print("{}\n  launcher: pid {}\n", head_line(job), job.at("pid").dump());
  if (trains(job)) fmt::print("  {}\n", progress_text(job));
  if (!job.at("output_dir").is_null()) fmt::print("  output: {}\n", or_nothing(job, "output_dir"));
  if (job.at("restarts") != 0) fmt::print("  restarts: {}\n", job.at("restarts").dump());
  for (const char* const name : {"idle", "absent"}) {
    const auto names = job.at(name).get<std::vector<std::string>>();
    if (!names.empty()) fmt::print("  {}: {}\n", name, fmt::join(names, ", "));
  }
  for (const Json& rank : job.at("ranks")) {
    const bool ended = !rank.at("status").is_null();
    fmt::print("  rank {} on {}, pid {}: {}{}{}\n", rank.at("rank").dump(),
               or_nothing(rank, "host"), or_nothing(rank, "pid"), or_nothing(rank, "state"),
               ended ? " with status " + rank.at("status").dump() : "",
               rank.at("log").is_null() ? "" : ", log " + or_nothing(rank, "log"));
  }
}

/// Prints what the ranks are doing and their stacks, which the launcher gives some seconds after
/// the request.
void print_stacks(const Json& stacks) {
  for (const Json& line : stacks.at("where")) fmt::print("  {}\n", line.get<std::string>());
  fmt::print("{}", stacks.at("text").get<std::string>());
}

void print_list(const launcher::FoundJobs& jobs) {
  if (jobs.answering.empty() && jobs.silent.empty()) {
    fmt::print("no job of yours is running on this machine\n");
  }
  for (const launcher::FoundJob& found : jobs.answering) {
    const Json job = Json::parse(found.status);
    fmt::print("{}\n", head_line(job));
    if (trains(job)) fmt::print("  {}\n", progress_text(job));
  }
  for (const launcher::SilentJob& job : jobs.silent) {
    fmt::print("job {}: {}\n", job.id, job.reason);
  }
}

/// One JSON object of each launcher, as one array.
void print_list_json(const launcher::FoundJobs& jobs) {
  Json list = Json::array();
  for (const launcher::FoundJob& job : jobs.answering) list.push_back(Json::parse(job.status));
  for (const launcher::SilentJob& job : jobs.silent) {
    list.push_back({{"job", job.id}, {"state", "silent"}, {"reason", job.reason}});
  }
  fmt::print("{}\n", list.dump());
}

/// The arguments of a command on jobs.
struct JobRequest {
  std::optional<std::string> job;
  bool json = false;
  bool stacks = false;
};

/// Reads JOB; none when help was asked for.
std::optional<JobRequest> parse_request(CLI::App& app, std::span<const std::string> arguments) {
  JobRequest request;
  app.footer(job_help);
  const bool lists = app.get_name() == "dstrain status";  // without JOB
  app.add_option("JOB", request.job, "id or output directory")->required(!lists);
  if (lists) {
    app.add_flag("--json", request.json, "print one JSON object for JOB, else a list of them");
    app.add_flag("--stacks", request.stacks, "show what each rank of JOB is doing, with its stack");
  }
  if (!parse_tool_options(app, arguments)) return std::nullopt;
  return request;
}

/// Sends a request to a job and returns the answer. Throws the launcher's error.
Json ask(const std::string& name, const std::string& request) {
  const launcher::FoundJob job = launcher::find_job(name);
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
  CLI::App app{"Shows the status of one running job, or of all your jobs.", "dstrain status"};
  const auto request = parse_request(app, arguments);
  if (!request) return status::done;
  if (!request->job) {
    if (request->stacks) fail(ErrorCode::usage, "--stacks: JOB is missing");
    const auto jobs = launcher::find_jobs();
    request->json ? print_list_json(jobs) : print_list(jobs);
    return status::done;
  }
  const launcher::FoundJob job = launcher::find_job(*request->job);
  Json json = Json::parse(job.status);
  const Json stacks = request->stacks ? ask(job.id, "stacks") : Json();
  if (request->json) {
    for (const char* const key : {"where", "stacks"}) {
      if (request->stacks) json[key] = stacks.at(key);
    }
    fmt::print("{}\n", json.dump());
    return status::done;
  }
  print_job(json);
  if (request->stacks) print_stacks(stacks);
  return status::done;
}

int save_command(std::span<const std::string> arguments) {
  CLI::App app{
      "Saves a checkpoint at the next step, waits until it is complete and prints its path. "
      "Training continues. A program of your own saves when it next asks Rank::save_requested(), "
      "or saves without asking.",
      "dstrain save"};
  const auto request = parse_request(app, arguments);
  if (!request) return status::done;
  fmt::print("{}\n", ask(*request->job, "save").at("checkpoint").get<std::string>());
  return status::done;
}

int stop_command(std::span<const std::string> arguments) {
  CLI::App app{
      "Stops a job as Ctrl-C would (a training saves a checkpoint first), and waits until all its "
      "processes have ended.",
      "dstrain stop"};
  const auto request = parse_request(app, arguments);
  if (!request) return status::done;
  const Json answer = ask(*request->job, "stop");
  const int ended = answer.at("status").get<int>();
  fmt::print("job {} has ended with status {}{}\n", answer.at("job").get<std::string>(), ended,
             ended == status::unsaved ? ": its last checkpoint was not completed and is lost" : "");
  return ended == status::unsaved ? status::unsaved : status::done;
}

}  // namespace dstrain::cmd
