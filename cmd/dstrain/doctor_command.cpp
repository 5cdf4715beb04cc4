#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cmd/dstrain/commands.h"
#include "cmd/dstrain/tool_options.h"
#include "launcher/doctor/host_side.h"
#include "launcher/doctor/machine_probe.h"
#include "launcher/job/examination.h"
#include "launcher/plan/allocation.h"
#include "launcher/plan/host_name.h"
#include "launcher/plan/machine.h"
#include "launcher/plan/options.h"
#include "launcher/plan/resources.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/rank/starter.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::cmd {
namespace {

using launcher::ExaminedHost;
using launcher::LaunchOptions;

constexpr int default_seconds = 30;

/// The launch options that name hosts and say how to reach them.
constexpr std::array launch_names{"-H",
                                  "--hostfile",
                                  "-i",
                                  "--include",
                                  "-e",
                                  "--exclude",
                                  "--num_nodes",
                                  "--ssh_port",
                                  "--ssh_config",
                                  "--ssh_command",
                                  "--force_multi",
                                  "--accept_new_host_keys",
                                  "--copy_binary",
                                  "--port_range",
                                  "--timeout"};

struct Request {
  bool json = false;
  bool this_host = false;  ///< answer for this host to another doctor
  std::string directory;   ///< the working directory of that one
  launcher::doctor::Question question;
  LaunchOptions launch;
};

bool is_launch_option(std::string name) {
  name = name.substr(0, name.find('='));
  if (name.starts_with("--")) std::replace(name.begin() + 2, name.end(), '-', '_');
  return std::ranges::find(launch_names, name) != launch_names.end();
}

/// Moves the launch options, and their values, from `words` to another list.
std::vector<std::string> take_launch_words(std::vector<std::string>& words) {
  std::vector<std::string> launch;
  std::vector<std::string> own;
  for (std::size_t at = 0; at < words.size();) {
    const bool taken = is_launch_option(words[at]);
    const std::size_t count =
        taken ? launcher::launch_option_words(std::span(words).subspan(at)) : 1;
    std::vector<std::string>& list = taken ? launch : own;
    for (std::size_t i = 0; i < count; ++i) list.push_back(words[at + i]);
    at += count;
  }
  words = std::move(own);
  return launch;
}

std::optional<Request> parse_request(std::span<const std::string> arguments) {
  std::vector<std::string> words(arguments.begin(), arguments.end());
  std::vector<std::string> launch = take_launch_words(words);
  Request request;
  CLI::App app{
      "Checks what is installed, reachable and usable, on this machine or on every host of a job.\n"
      "Name hosts and say how to reach them with the launch options --hostfile, --include, "
      "--exclude,\n"
      "--num_nodes, --ssh_port, --ssh_config, --ssh_command, --accept_new_host_keys, "
      "--copy_binary,\n"
      "--force_multi. --timeout SECONDS limits the time of each host [30]. --port_range "
      "FIRST-LAST:\n"
      "hosts must reach each other on these ports.\n"
      "Exit status: 0 if nothing is wrong, 1 if something is.",
      "dstrain doctor"};
  app.add_flag("--json", request.json, "print one JSON object instead of a table");
  app.add_option("--path", request.question.paths,
                 "check this directory, which jobs write to, on each host; may be repeated")
      ->allow_extra_args(false);
  app.add_flag("--this_host", request.this_host)->group("");
  app.add_option("--directory", request.directory)->group("");
  app.add_option("--host", request.question.hosts)->allow_extra_args(false)->group("");
  app.add_option("--starter_refusal", request.question.starter_refusal)->group("");
  app.add_option("--ssh_host", request.question.ssh_hosts)->allow_extra_args(false)->group("");
  if (!parse_tool_options(app, words)) return std::nullopt;
  for (const std::string& path : request.question.paths) {
    if (path.empty()) fail(ErrorCode::usage, "doctor: --path: is empty; name a directory");
  }
  launch.emplace_back("doctor");
  request.launch = launcher::parse_command_line(launch).options;
  for (const std::string& warning : request.launch.warnings) log_warning(warning);
  request.question.ports = request.launch.port_range;
  request.launch.device = "cpu";  // the doctor does not care which slots are GPUs
  return request;
}

/// This machine first, by its name in the hostfile.
std::vector<ExaminedHost> hosts_of(const LaunchOptions& options) {
  const launcher::Machine machine = launcher::this_machine();
  const launcher::Resources resources = launcher::resolve_resources(
      options, machine, {launcher::find_hostfile(options), std::nullopt},
      launcher::RankDevice::cpu_only);
  std::vector<ExaminedHost> hosts{{.name = machine.host_name, .of_job = false}};
  for (std::size_t i = 0; i < resources.remote.size(); ++i) {
    const std::string& name = resources.plan.hosts()[i].host;
    if (resources.remote[i]) {
      hosts.push_back({.name = name, .remote = true});
    } else {
      hosts.front() = {.name = resources.remote.size() > 1 ? name : machine.host_name};
    }
  }
  return hosts;
}

/// Whether mpirun, srun or torchrun has started this very process: then its variables are not
/// leftovers.
bool is_started_task() {
  constexpr std::array<std::string_view, 7> starters{
      "hydra_pmi_proxy", "mpiexec", "mpirun", "orte", "prte", "slurmstepd", "torchrun"};
  std::ifstream file(fmt::format("/proc/{}/comm", ::getppid()));
  std::string parent;
  std::getline(file, parent);
  return std::ranges::any_of(starters,
                             [&](std::string_view name) { return parent.starts_with(name); });
}

/// See Question::starter_refusal.
std::string starter_refusal() {
  if (is_started_task()) return "";
  try {
    LaunchOptions plain;
    launcher::join_step(plain);
    if (!plain.no_ssh) check_started_alone();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// The arguments of the doctor's process on `host`.
std::vector<std::string> words_for(const ExaminedHost& host,
                                   const std::vector<ExaminedHost>& hosts,
                                   const Request& request) {
  std::vector<std::string> words{"doctor", "--this_host", "--directory",
                                 std::filesystem::current_path().string()};
  for (const std::string& path : request.question.paths) {
    words.insert(words.end(), {"--path", std::filesystem::absolute(path).lexically_normal()});
  }
  const std::string refusal = &host == &hosts.front() ? starter_refusal() : "";
  if (!refusal.empty()) words.insert(words.end(), {"--starter_refusal", refusal});
  const LaunchOptions& launch = request.launch;
  if (launch.port_range) words.insert(words.end(), {"--port_range", to_string(*launch.port_range)});
  const bool own_ssh_files = !host.remote && launch.ssh_command.empty() &&
                             launch.ssh_config.empty() && !launch.accept_new_host_keys;
  for (const ExaminedHost& other : hosts) {
    // A name that every machine gives itself, such as localhost, does not name another host.
    if (&other == &host || !other.of_job || launcher::is_this_machine(other.name, "")) continue;
    words.insert(words.end(), {"--host", other.name});
    if (own_ssh_files && other.remote) words.insert(words.end(), {"--ssh_host", other.name});
  }
  return words;
}

int answer(const Request& request) {
  const launcher::doctor::MachineProbe probe(
      {.version = DSTRAIN_VERSION, .working_directory = request.directory});
  return launcher::doctor::answer_for_host(probe, request.question);
}

}  // namespace

int doctor_command(std::span<const std::string> arguments) {
  const std::optional<Request> request = parse_request(arguments);
  if (!request) return status::done;
  if (request->this_host) return answer(*request);
  launcher::Examination examination;
  examination.version = DSTRAIN_VERSION;
  examination.hosts = hosts_of(request->launch);
  for (ExaminedHost& host : examination.hosts) {
    host.words = words_for(host, examination.hosts, *request);
  }
  examination.seconds = request->launch.timeout_seconds.value_or(default_seconds);
  examination.open = launcher::choose_remote_link(
      request->launch, {.job_id = "doctor",
                        .version = DSTRAIN_VERSION,
                        // A connection must report its own error before it is given up.
                        .connect_timeout_seconds = examination.seconds * 2 / 3});
  const auto reports = launcher::examine_hosts(examination);
  fmt::print("{}", request->json ? launcher::doctor::as_json(reports)
                                 : launcher::doctor::as_table(reports));
  return launcher::doctor::count_problems(reports) > 0 ? status::failed : status::done;
}

}  // namespace dstrain::cmd
