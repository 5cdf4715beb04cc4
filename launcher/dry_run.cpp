#include "launcher/dry_run.h"

#include <nlohmann/json.hpp>

namespace dstrain::launcher {
namespace {

using Json = nlohmann::ordered_json;

Json hosts_json(const HostPlan& plan) {
  Json hosts = Json::array();
  for (const HostSlots& host : plan.hosts()) {
    hosts.push_back({{"host", host.host}, {"slots", host.slots}, {"ranks", Json::array()}});
  }
  for (const RankPlace& place : plan.ranks()) {
    hosts.at(static_cast<std::size_t>(place.node_rank)).at("ranks").push_back(place.rank);
  }
  return hosts;
}

}  // namespace

std::string dry_run_json(const HostPlan& plan, const JobIdentity& identity, const JobSpec& job) {
  Json commands = Json::array();
  for (const RankSpec& rank : job.ranks) {
    std::vector<std::string> argv = arguments_of(job.command, rank.local_rank);
    argv.front() = job.command.program;
    commands.push_back(std::move(argv));
  }
  Json env = Json::object();
  for (const EnvVar& variable : job.env) {
    env[variable.name] = is_secret(variable.name) ? "<hidden>" : variable.value;
  }
  const Json json{{"launcher", "local"},
                  {"world_size", plan.world_size()},
                  {"master_addr", identity.master_addr},
                  {"master_port", identity.master_port},
                  {"hosts", hosts_json(plan)},
                  {"commands", std::move(commands)},
                  {"env", std::move(env)}};
  // Arguments are bytes; JSON is text: what is no UTF-8 is shown with replacement characters.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace dstrain::launcher
