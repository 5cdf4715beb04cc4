#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dstrain {

namespace env {
/// The nodes of a job whose launcher knows them, in the format of encode_rank_nodes().
inline constexpr const char* nodes = "DSTRAIN_NODES";
}  // namespace env

/// One node of a job, for messages that name its ranks.
struct RankNode {
  std::string host;  ///< empty: unknown
  int ranks = 0;
};
/// All nodes of a job, in the order of their ranks; empty: unknown.
using RankNodes = std::vector<RankNode>;

/// Returns "w0*2,w1*2", and "*2,*2" for nodes without names.
std::string encode_rank_nodes(const RankNodes& nodes);
/// Returns none for any other text, or if the nodes do not have `world_size` ranks in total.
RankNodes decode_rank_nodes(std::string_view text, int world_size);

/// Returns "ranks 2 3 (host w1)", "rank 1 (node rank 0), ranks 2 3 (node rank 1)", or "ranks 1 2 3"
/// if nodes are unknown; for many nodes, the first ones and the number of other ranks. @p ranks
/// ascend.
std::string locate_ranks(std::span<const int> ranks, const RankNodes& nodes);

}  // namespace dstrain
