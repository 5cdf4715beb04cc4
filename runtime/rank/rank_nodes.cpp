#include "runtime/rank/rank_nodes.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/number.h"

namespace dstrain {
namespace {

constexpr std::size_t named_nodes_max = 16;

std::string name_group(std::span<const int> ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, " "));
}

}  // namespace

std::string encode_rank_nodes(const RankNodes& nodes) {
  std::string text;
  for (const RankNode& node : nodes) {
    text += fmt::format("{}{}*{}", text.empty() ? "" : ",", node.host, node.ranks);
  }
  return text;
}

RankNodes decode_rank_nodes(std::string_view text, int world_size) {
  RankNodes nodes;
  int ranks_left = world_size;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view node = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t star = std::min(node.find('*'), node.size());
    const auto ranks = parse_number<int>(node.substr(std::min(star + 1, node.size())));
    if (!ranks || *ranks < 1 || *ranks > ranks_left) return {};
    ranks_left -= *ranks;
    nodes.push_back({std::string(node.substr(0, star)), *ranks});
  }
  return ranks_left == 0 ? nodes : RankNodes();
}

std::string locate_ranks(std::span<const int> ranks, const RankNodes& nodes) {
  if (nodes.empty()) return name_group(ranks);
  std::string text;
  int end = 0;  // of the node's ranks
  std::size_t named = 0;
  for (std::size_t node = 0; node < nodes.size() && !ranks.empty(); ++node) {
    end += nodes[node].ranks;
    const auto behind = std::ranges::lower_bound(ranks, end);
    const auto count = static_cast<std::size_t>(behind - ranks.begin());
    if (count == 0) continue;
    if (++named > named_nodes_max) return text + fmt::format(" and {} more", ranks.size());
    const std::string& host = nodes[node].host;
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", name_group(ranks.first(count)),
                        host.empty() ? fmt::format("node rank {}", node) : "host " + host);
    ranks = ranks.subspan(count);
  }
  return text;
}

}  // namespace dstrain
