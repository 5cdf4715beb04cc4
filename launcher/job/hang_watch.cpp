#include "launcher/job/hang_watch.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "launcher/protocol/wire.h"

namespace dstrain::launcher {
namespace {

using Json = nlohmann::ordered_json;

std::vector<int> ranks_of(const HostAgent& agent) {
  std::vector<int> ranks;
  for (const auto& [rank, pid] : agent.pids) ranks.push_back(rank);
  return ranks;
}

bool is_working(const std::unique_ptr<HostAgent>& agent) {
  return agent->state == HostAgent::State::working;
}

}  // namespace

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
      if (!to_.supervisor.stopping()) to_.console.say("info", "the job moves again");
  }
}

std::vector<std::string> HangWatch::lines() const {
  const bool any = std::ranges::any_of(watch_.ranks(),
                                       [](const auto& entry) { return entry.second.publishes(); });
  if (!any) return {};
  const auto place = [this](int rank) {
    const RankStatus& status = to_.status.ranks.at(rank);
    return fmt::format("host {}, pid {}", status.host, status.pid);
  };
  return describe(diagnose(watch_.ranks()), watch_.ranks(), place);
}

std::string HangWatch::block() const {
  std::string text;
  for (const std::string& line : lines())
    text += fmt::format("{}{}", text.empty() ? "" : "\n  ", line);
  return text;
}

void HangWatch::say_hang() {
  to_.console.say("warning", fmt::format("no rank has moved for {:.0f} s: {}",
                                         watch_.still_seconds(), block()));
  say_stacks_ = true;
  ask_agents();
}

void HangWatch::rank_timed_out(int rank) {
  const std::string where = block();
  if (watch_.ranks().size() < 2 || where.empty()) return;
  to_.console.say("warning", fmt::format("when rank {} gave up waiting: {}", rank, where));
}

void HangWatch::ask_for_stacks() {
  answer_stacks_ = true;
  ask_agents();
}

void HangWatch::ask_agents() {
  if (stacks_.under_way()) return;
  const auto working = std::ranges::count_if(to_.agents, is_working);
  WireWriter request;
  request.u32(stacks_.begin(static_cast<std::size_t>(working), to_.clock.now_seconds()));
  const std::string payload = request.take();
  for (const auto& agent : to_.agents) {
    if (is_working(agent)) agent->send(ToAgent::stacks, payload);
  }
}

void HangWatch::take_stacks(HostAgent& agent, const Stacks& stacks) {
  stacks_.take(agent.name(), stacks);
}

void HangWatch::tick() {
  if (stacks_.take_end(to_.clock.now_seconds())) pass_on_stacks();
}

void HangWatch::pass_on_stacks() {
  if (say_stacks_) to_.console.ranks().own_lines(stacks_.text());
  if (answer_stacks_) {
    Json json{{"where", lines()}, {"stacks", Json::array()}, {"text", stacks_.text()}};
    for (const StackCollection::Group& group : stacks_.groups()) {
      json["stacks"].push_back({{"ranks", group.ranks}, {"text", group.text}});
    }
    to_.server.answer_stacks(json.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  say_stacks_ = answer_stacks_ = false;
}

}  // namespace dstrain::launcher
