#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dstrain {

namespace env {
/// The nodes of a job whose launcher knows them, as encode_rank_nodes() has them.
inline constexpr const char* nodes = "DSTRAIN_NODES";
}  // namespace env

/// One node of a job, for messages that name its ranks.
struct RankNode {
  std::string host;  ///< empty: nobody has named it
  int ranks = 0;
};
/// All of them, in the order of their ranks; empty: nothing is known.
using RankNodes = std::vector<RankNode>;

/// "w0*2,w1*2", and "*2,*2" of nodes without names.
std::string encode_rank_nodes(const RankNodes& nodes);
/// None for any other text, or where the nodes have not `world_size` ranks.
RankNodes decode_rank_nodes(std::string_view text, int world_size);

/// "ranks 2 3 (host w1)", "rank 1 (node rank 0), ranks 2 3 (node rank 1)", or "ranks 1 2 3" where
/// nothing is known; of many nodes the first and how many ranks more. @p ranks ascend.
std::string locate_ranks(std::span<const int> ranks, const RankNodes& nodes);

}  // namespace dstrain
