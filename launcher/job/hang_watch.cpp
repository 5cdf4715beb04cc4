#include "launcher/job/hang_watch.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "launcher/protocol/wire.h"

namespace dstrain::launcher {
namespace {

using Json = nlohmann::ordered_json;

/// A watched agent looks at its ranks once a second, also while it takes stacks.
constexpr double silent_seconds = 4;
/// Ranks that made progress this recently are not judged.
constexpr double moving_seconds = 2;
/// An agent without a rank to look at answers within this time.
constexpr double least_wait_seconds = 1;

std::vector<int> ranks_of(const HostAgent& agent) {
  std::vector<int> ranks;
  for (const auto& [rank, pid] : agent.pids) ranks.push_back(rank);
  return ranks;
}

/// The awaited ranks, as the first rank that knows them reported.
std::string awaited_ranks(const JobStatus& status) {
  for (const auto& [number, rank] : status.ranks) {
    if (!rank.awaits.empty()) return rank.awaits;
  }
  return "";
}

bool is_working(const HostAgent& agent) {
  return agent.state == HostAgent::State::working;
}

}  // namespace

std::string no_stacks_json(const std::string& reason) {
  return Json{{"where", {reason}}, {"stacks", Json::array()}, {"text", ""}}.dump();
}

void HangWatch::ranks_started() {
  for (const auto& agent : to_.agents) heard(*agent);
}

void HangWatch::heard(const HostAgent& agent) {
  if (agent.task().spec.look_milliseconds == 0) return;
  heard_at_[agent.first_rank()] = to_.clock.now_seconds();
}

void HangWatch::take_look(HostAgent& agent, const AgentLook& look) {
  for (const RankLook& rank : look.ranks) agent.check_rank(rank.rank);
  std::vector<int> ranks = ranks_of(agent);
  std::erase_if(ranks, [&](int rank) { return to_.status.ranks.at(rank).wait_status.has_value(); });
  watch_.take(ranks, look);
  switch (watch_.judge()) {
    case Watch::News::none:
      return;
    case Watch::News::hangs:
      return say_hang();
    case Watch::News::moves_again:
      if (!to_.supervisor.stopping()) to_.console.say("info", "the job makes progress again");
  }
}

std::vector<std::string> HangWatch::lines(Asked asked) const {
  const bool any = std::ranges::any_of(watch_.ranks(),
                                       [](const auto& entry) { return entry.second.publishes(); });
  if (!any) return silent_lines();
  const auto place = [this](int rank) {
    const RankStatus& status = to_.status.ranks.at(rank);
    return fmt::format("host {}, pid {}", status.host, status.pid);
  };
  const bool moves =
      asked == Asked::from_outside && !watch_.hangs() && watch_.still_seconds() < moving_seconds;
  Diagnosis diagnosis = moves ? Diagnosis{.kind = HangKind::moving} : diagnose(watch_.ranks());
  for (const auto& [rank, watched] : watch_.ranks()) {
    if (moves) diagnosis.waiting.push_back(rank);
  }
  if (diagnosis.kind == HangKind::meeting) diagnosis.awaited = awaited_ranks(to_.status);
  std::vector<std::string> lines = describe(diagnosis, watch_.ranks(), place);
  for (std::string& line : silent_lines()) lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> HangWatch::silent_lines() const {
  std::vector<std::string> lines;
  for (const auto& agent : to_.agents) {
    if (auto line = silent_line(*agent)) lines.push_back(std::move(*line));
  }
  return lines;
}

std::optional<std::string> HangWatch::silent_line(const HostAgent& agent) const {
  const auto heard = heard_at_.find(agent.first_rank());
  if (!is_working(agent) || heard == heard_at_.end()) return std::nullopt;
  const double silence = to_.clock.now_seconds() - heard->second;
  if (silence < silent_seconds) return std::nullopt;
  std::vector<int> ranks;
  for (const RankSpec& rank : agent.task().spec.ranks) ranks.push_back(rank.rank);
  const std::string pid = agent.pid() == 0 ? "" : fmt::format(", pid {},", agent.pid());
  return fmt::format("host {} ({}) has sent nothing for {:.0f} s: its agent{} may be stopped",
                     agent.name(), list_ranks(ranks), silence, pid);
}

std::string HangWatch::block() const {
  std::string text;
  for (const std::string& line : lines(Asked::by_trouble))
    text += fmt::format("{}{}", text.empty() ? "" : "\n  ", line);
  return text;
}

void HangWatch::say_hang() {
  to_.console.say("warning", fmt::format("no rank has made progress for {:.0f} s: {}",
                                         watch_.still_seconds(), block()));
  say_stacks_ = true;
  ask_agents();
}

void HangWatch::rank_timed_out(int rank) {
  const std::string where = block();
  if (watch_.ranks().size() < 2 || where.empty()) return;
  to_.console.say("warning",
                  fmt::format("state of the ranks when rank {} timed out: {}", rank, where));
}

void HangWatch::ask_for_stacks() {
  answer_stacks_ = true;
  ask_agents();
}

void HangWatch::ask_agents() {
  if (stacks_.under_way()) return;
  StackCollection::Agents working;
  for (const auto& agent : to_.agents) {
    if (is_working(*agent)) working[agent->first_rank()] = agent->name();
  }
  asked_at_ = to_.clock.now_seconds();
  WireWriter request;
  request.u32(stacks_.begin(std::move(working), asked_at_));
  const std::string payload = request.take();
  for (const auto& agent : to_.agents) {
    if (is_working(*agent)) agent->send(ToAgent::stacks, payload);
  }
}

void HangWatch::take_stacks(HostAgent& agent, const Stacks& stacks) {
  stacks_.take(agent.first_rank(), stacks);
}

void HangWatch::host_lost(const HostAgent& agent) {
  for (const int rank : ranks_of(agent)) watch_.rank_ended(rank);
  stacks_.give_up(agent.first_rank());
}

double HangWatch::patience_with(int agent, double asked_at) const {
  const auto heard = heard_at_.find(agent);
  if (heard == heard_at_.end()) return std::numeric_limits<double>::infinity();  // it never looks
  return std::max(heard->second + silent_seconds, asked_at + least_wait_seconds);
}

void HangWatch::save_requested() {
  if (!save_asked_at_) save_asked_at_ = to_.clock.now_seconds();
}

std::optional<double> HangWatch::patience_with_save() const {
  if (!save_asked_at_ || !is_working(to_.agents.front())) return std::nullopt;
  return patience_with(to_.agents.front().first_rank(), *save_asked_at_);
}

/// The ranks of a stopped agent run on, but only the first agent passes the request on, and the
/// answer: without it nobody knows when, or whether, there is a checkpoint.
void HangWatch::refuse_hopeless_saves(double now) {
  if (to_.server.newest_save_request() == 0) save_asked_at_.reset();
  const auto patience = patience_with_save();
  if (!patience || now < *patience) return;
  const auto silence = silent_line(to_.agents.front());
  if (!silence) return;
  to_.server.refuse_saves(fmt::format(
      "{}; the checkpoint is saved once it continues, but this command does not wait for that",
      *silence));
  save_asked_at_.reset();
}

std::optional<double> HangWatch::deadline() const {
  std::optional<double> next = stacks_.deadline();
  for (const auto& [agent, host] : stacks_.awaited()) {
    next = std::min(*next, patience_with(agent, asked_at_));
  }
  const auto save = patience_with_save();
  return next && save ? std::min(*next, *save) : next ? next : save;
}

void HangWatch::tick() {
  const double now = to_.clock.now_seconds();
  const StackCollection::Agents awaited = stacks_.awaited();
  for (const auto& [agent, host] : awaited) {
    if (now >= patience_with(agent, asked_at_)) stacks_.give_up(agent);
  }
  refuse_hopeless_saves(now);
  if (stacks_.take_end(now)) pass_on_stacks();
}

void HangWatch::pass_on_stacks() {
  if (say_stacks_) to_.console.ranks().own_lines(stacks_.text());
  if (answer_stacks_) {
    Json json{
        {"where", lines(Asked::from_outside)}, {"stacks", Json::array()}, {"text", stacks_.text()}};
    for (const StackCollection::Group& group : stacks_.groups()) {
      json["stacks"].push_back({{"ranks", group.ranks}, {"text", group.text}});
    }
    to_.server.answer_stacks(json.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  say_stacks_ = answer_stacks_ = false;
}

}  // namespace dstrain::launcher
