#include "launcher/job/agent_handshake.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "launcher/plan/machine.h"
#include "runtime/base/error.h"
#include "runtime/os/socket.h"

namespace dstrain::launcher {
namespace {

using State = HostAgent::State;

constexpr int any_port = 22;

/// An address with a zone ("fe80::1%eth0") means something to one machine only.
bool is_known(const std::string& address) {
  return !address.empty() && address.find('%') == address.npos;
}

}  // namespace

AgentHandshake::AgentHandshake(const LaunchJob& job, HostAgents& agents, double now)
    : job_(job), agents_(agents), deadline_(now + job.connect_seconds) {}

void AgentHandshake::take_hello(HostAgent& agent, const Frame& frame) {
  agent.hello = decode_hello(frame.payload);
  if (agent.hello.protocol == protocol_version && agent.hello.version == job_.version) {
    agent.state = State::ready;
    return;
  }
  fail(ErrorCode::remote,
       "its dstrain is version {} (protocol {}), this one is {} ({}); pass --copy_binary to copy "
       "this one there",
       agent.hello.version.empty() ? "unknown" : agent.hello.version, agent.hello.protocol,
       job_.version, protocol_version);
}

void AgentHandshake::take_port(const Frame& frame) {
  WireReader in(frame.payload);
  port_ = in.i32();
  if (port_ > 0) return;
  const ErrorCode code = job_.master_port.exactly() ? ErrorCode::usage : ErrorCode::remote;
  fail(code, "{}: {}", agents_.front().name(), in.string());
}

void AgentHandshake::take(HostAgent& agent, const Frame& frame) {
  const auto type = static_cast<FromAgent>(frame.type);
  const bool asked_now = asked_ && port_ == 0 && &agent == &agents_.front();
  if (type == FromAgent::hello && agent.state == State::connecting) return take_hello(agent, frame);
  if (type == FromAgent::port && asked_now) return take_port(frame);
  if (type == FromAgent::beat && agent.state == State::ready) return;
  fail(ErrorCode::remote, "agent protocol: frame type {} before the job", frame.type);
}

/// For agents that one program starts: collects that program's output once, else each rank that did
/// not answer.
void AgentHandshake::collect_task_failures() {
  const std::string output = agents_.starter_output();
  for (const auto& agent : agents_) {
    const int rank = agent->first_rank();
    std::string failure = agent->failure;
    if (agent->state == State::connecting && failure.empty()) {
      failure = fmt::format("rank {} on {} did not answer within {} s{}{}", rank, agent->name(),
                            job_.connect_seconds, output.empty() ? "" : "; ", output);
    }
    const bool known = std::find(failures_.begin(), failures_.end(), failure) != failures_.end();
    if (!failure.empty() && !known) failures_.push_back(failure);
  }
  if (failures_.empty()) return;
  const std::filesystem::path program = job_.task_command->argv.front();
  failures_.back() += fmt::format("\n  To start the ranks without {}, pass --launcher ssh.",
                                  program.filename().string());
}

void AgentHandshake::collect_failures() {
  if (job_.task_command) return collect_task_failures();
  for (const auto& agent : agents_) {
    if (agent->state == State::connecting) {
      agent->failure = fmt::format("did not answer within {} s", job_.connect_seconds);
    }
    if (agent->failure.empty()) continue;
    failures_.push_back(fmt::format("host {}: {}", agent->name(), agent->failure));
  }
}

/// Checks the other hosts only: the launcher has checked its own machine.
void AgentHandshake::refuse_gpus() const {
  for (const auto& agent : agents_) {
    if (!agent->task().remote || agent->hello.gpus == 0) continue;
    fail(ErrorCode::usage, "{}", unusable_gpus("host " + agent->name(), agent->hello.gpus));
  }
}

/// If slots are GPUs, each host's CUDA_VISIBLE_DEVICES must be usable.
void AgentHandshake::check_gpus() const {
  for (const auto& agent : agents_) {
    if (!agent->task().spec.use_gpus || agent->hello.gpu_problem.empty()) continue;
    fail(ErrorCode::usage, "host {}: {}", agent->name(), agent->hello.gpu_problem);
  }
}

void AgentHandshake::ask_for_port() {
  HostAgent& first = agents_.front();
  PortRequest request = job_.master_port;
  if (first.task().spec.command.daemon) request.address = address();
  first.send(ToAgent::port, encode_port_request(request));
}

AgentHandshake::Phase AgentHandshake::advance(double now) {
  if (agents_.any(State::connecting) && now <= deadline_) return Phase::waiting;
  collect_failures();
  if (!failures_.empty()) return Phase::failed;
  if (job_.refuses_gpus) refuse_gpus();
  check_gpus();
  if (port_ > 0) return Phase::done;
  if (agents_.front().first_rank() != 0) {  // another launcher's agent has rank 0
    port_ = job_.master_port.port;
    return Phase::done;
  }
  if (!std::exchange(asked_, true)) ask_for_port();
  return Phase::waiting;
}

std::string AgentHandshake::address() const {
  if (!job_.master_addr.empty()) return job_.master_addr;
  if (agents_.hosts() == 1) return "127.0.0.1";
  const HostAgent& first = agents_.front();
  if (first.task().remote) {
    return is_known(first.hello.own_address) ? first.hello.own_address : first.name();
  }
  const auto other = std::find_if(agents_.begin(), agents_.end(),
                                  [](const auto& agent) { return agent->task().remote; });
  if (other == agents_.end()) return "127.0.0.1";
  const HostAgent& remote = **other;
  if (is_known(remote.hello.peer_address)) return remote.hello.peer_address;
  Result<std::string> address = local_address_towards({remote.name(), any_port});
  if (!address.ok()) {
    fail(ErrorCode::remote,
         "cannot determine the address at which {} reaches this machine ({}); pass --master_addr "
         "ADDRESS",
         remote.name(), address.error());
  }
  return address.value();
}

}  // namespace dstrain::launcher
