#include "launcher/plan/dry_run.h"

#include <nlohmann/json.hpp>

#include "launcher/plan/job_env.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::launcher {
namespace {

using Json = nlohmann::ordered_json;

Json hosts_json(const HostPlan& plan) {
  Json hosts = Json::array();
  for (const HostSlots& host : plan.hosts()) {
    hosts.push_back({{"host", host.host}, {"slots", host.slots}, {"ranks", Json::array()}});
  }
  for (const RankAssignment& rank : plan.ranks()) {
    hosts.at(static_cast<std::size_t>(rank.node_rank)).at("ranks").push_back(rank.rank);
  }
  return hosts;
}

Json commands_json(const DryRun& run) {
  if (run.task_command != nullptr) return Json::array({run.task_command->argv});
  Json commands = Json::array();
  for (const JobSpec& job : run.specs) {
    for (const RankSpec& rank : job.ranks) {
      std::vector<std::string> argv = arguments_of(job.command, rank.local_rank);
      argv.front() = job.command.program;
      commands.push_back(std::move(argv));
    }
  }
  return commands;
}

}  // namespace

std::string dry_run_json(const DryRun& run) {
  Json shared = Json::object();
  for (const EnvVar& variable : run.specs.front().env) {
    shared[variable.name] = is_secret(variable.name) ? "<hidden>" : variable.value;
  }
  shared[env::master_addr] = run.master_addr;
  shared[env::master_port] = std::to_string(run.master_port);
  const HostPlan& plan = run.resources.plan;
  Json json{{"launcher", run.resources.launcher()},
            {"world_size", plan.world_size()},
            {"master_addr", run.master_addr},
            {"master_port", run.master_port},
            {"hosts", hosts_json(plan)},
            {"commands", commands_json(run)},
            {"env", std::move(shared)}};
  if (run.idle != nullptr) json["idle"] = *run.idle;
  // Arguments are bytes, JSON is text: bytes that are not UTF-8 become replacement characters.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace dstrain::launcher
