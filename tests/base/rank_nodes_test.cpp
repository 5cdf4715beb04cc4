#include "runtime/rank/rank_nodes.h"

#include <numeric>

#include "tests/support/catch.h"

using namespace dstrain;

TEST_CASE("RankNodes: survive a round trip if the number of ranks is right", "[base]") {
  const std::string text = GENERATE("w0*2,fe80::1*1,*3", "*3,*3", "a*6");
  CHECK(encode_rank_nodes(decode_rank_nodes(text, 6)) == text);
  CHECK(decode_rank_nodes(text, 5).empty());
  CHECK(decode_rank_nodes(text, 7).empty());
}

TEST_CASE("RankNodes: other texts are not taken for a list of nodes", "[base]") {
  const std::string text = GENERATE("", "w0", "w0*", "w0*0,w1*2", "w0*-1,w1*3", ",w0*2");
  CAPTURE(text);
  CHECK(decode_rank_nodes(text, 2).empty());
}

TEST_CASE("RankNodes: ranks are named with their hosts", "[base]") {
  const RankNodes nodes{{"w0", 2}, {"", 2}, {"w2", 1}};
  const auto name = [&](std::vector<int> ranks) {
    return locate_ranks(ranks, nodes);
  };
  CHECK(name({0, 1}) == "ranks 0 1 (host w0)");
  CHECK(name({1, 2, 3, 4}) == "rank 1 (host w0), ranks 2 3 (node rank 1), rank 4 (host w2)");
  CHECK(locate_ranks(std::vector{1, 2}, {}) == "ranks 1 2");
}

TEST_CASE("RankNodes: a list of many hosts stays short", "[base]") {
  std::vector<int> ranks(1000);
  std::iota(ranks.begin(), ranks.end(), 0);
  const std::string text = locate_ranks(ranks, RankNodes(1000, RankNode{"host", 1}));
  CHECK(text.size() < 500);
  CHECK(text.ends_with("rank 15 (host host) and 984 more"));
}
