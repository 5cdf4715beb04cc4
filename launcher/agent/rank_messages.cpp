#include "launcher/agent/rank_messages.h"

namespace dstrain::launcher {
namespace {

constexpr double progress_seconds = 0.05;

}  // namespace

void RankMessages::add_polls(std::vector<pollfd>& fds) const {
  for (const AgentRank& rank : ranks_) fds.push_back({rank.channel().fd(), POLLIN, 0});
}

void RankMessages::pass_on() {
  const double now = clock_.now_seconds();
  for (AgentRank& rank : ranks_) {
    rank.channel().receive();
    const bool progress = reports(rank) && rank.channel().has_progress() && now >= next_progress_;
    if (progress) next_progress_ = now + progress_seconds;
    send(rank, progress ? RankChannel::Which::all : RankChannel::Which::answers);
  }
}

void RankMessages::rank_ended(AgentRank& rank) {
  rank.channel().receive();
  send(rank, RankChannel::Which::all);
}

void RankMessages::send_to_rank(std::string_view payload) {
  const RankMessage message = decode_rank_message(payload);
  for (AgentRank& rank : ranks_) {
    if (rank.rank() == message.rank) rank.channel().send(message.text);
  }
}

std::optional<double> RankMessages::deadline() const {
  const bool held = reports_ && !ranks_.empty() && ranks_.front().running() &&
                    ranks_.front().channel().has_progress();
  return held ? std::optional(next_progress_) : std::nullopt;
}

void RankMessages::send(AgentRank& rank, RankChannel::Which which) {
  for (std::string& text : rank.channel().take(which)) {
    sender_.rank_message({rank.rank(), std::move(text)});
  }
}

}  // namespace dstrain::launcher
