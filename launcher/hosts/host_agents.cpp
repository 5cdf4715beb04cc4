#include "launcher/hosts/host_agents.h"

#include <algorithm>
#include <set>

#include "launcher/hosts/process_link.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::launcher {

void HostAgents::start(const Settings& settings) {
  Relay::Settings remote;
  for (const HostTask& task : settings.tasks) {
    if (task.remote) remote.hosts.push_back(task.host);
  }
  remote.open = [&settings](const std::string& host) {
    return settings.open(host, settings.signal_mask);
  };
  remote.silence_seconds = settings.silence_seconds;
  if (settings.task_command != nullptr) {
    has_starter_ = true;
    remote.tasks = {*settings.task_command, settings.job_id, settings.signal_mask};
  }
  // Forks before this process opens pipes, which the relay would keep open.
  if (!remote.hosts.empty()) relay_.emplace(remote);
  std::size_t index = 0;
  for (const HostTask& task : settings.tasks) {
    agents_.push_back(std::make_unique<HostAgent>(
        task, task.remote ? relay_->take_link(index++)
                          : start_local_agent(settings.job_id, settings.signal_mask)));
  }
}

int HostAgents::hosts() const {
  std::set<std::string> names;
  for (const auto& agent : agents_) names.insert(agent->name());
  return static_cast<int>(names.size());
}

void HostAgents::close() {
  agents_.clear();
  relay_.reset();
}

HostAgent& HostAgents::of_rank(int rank) const {
  const auto found = std::find_if(agents_.begin(), agents_.end(), [rank](const auto& agent) {
    return rank < agent->first_rank() + agent->ranks();
  });
  return **found;
}

bool HostAgents::any(HostAgent::State state) const {
  return std::any_of(agents_.begin(), agents_.end(),
                     [state](const auto& agent) { return agent->state == state; });
}

bool HostAgents::any_open() const {
  return std::any_of(agents_.begin(), agents_.end(),
                     [](const auto& agent) { return agent->state != HostAgent::State::ended; });
}

void HostAgents::start_ranks(const std::string& address, int port) const {
  for (const auto& agent : agents_) {
    JobSpec spec = agent->task().spec;
    set_env(spec.env, env::master_addr, address);
    set_env(spec.env, env::master_port, std::to_string(port));
    agent->send(ToAgent::job, encode_job(spec));
    agent->state = HostAgent::State::working;
  }
}

void HostAgents::send_signal(int number) const {
  WireWriter signal;
  signal.i32(number);
  const std::string payload = signal.take();
  for (const auto& agent : agents_) {
    if (agent->state == HostAgent::State::working) agent->send(ToAgent::signal, payload);
  }
}

void HostAgents::abandon() const {
  for (const auto& agent : agents_) {
    if (agent->state != HostAgent::State::ended) agent->abandon();
  }
}

}  // namespace dstrain::launcher
