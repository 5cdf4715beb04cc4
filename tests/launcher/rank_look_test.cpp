#include "launcher/protocol/rank_look.h"

#include "runtime/base/error.h"
#include "tests/launcher/seen_ranks.h"
#include "tests/support/catch.h"

using namespace dstrain;
using namespace dstrain::launcher;

TEST_CASE("AgentLook: survives a round trip", "[launcher]") {
  AgentLook look{.now_ns = 1LL << 60, .seconds = 1.25, .ranks = {}};
  look.ranks.push_back(test::SeenRank{.changes = 1ULL << 63}.look(3));
  look.ranks.push_back(test::SeenRank{.phase = RunPhase::saving, .inside = true}.look(4));
  look.ranks[0].progress.compute.unit = -1;
  look.ranks[1].progress.save.since_ns = -5;
  const AgentLook back = decode_look(encode_look(look));
  CHECK(encode_look(back) == encode_look(look));
  CHECK(back.now_ns == look.now_ns);
  CHECK(back.seconds == 1.25);
  REQUIRE(back.ranks.size() == 2);
  CHECK(back.ranks[0].progress.compute.changes == 1ULL << 63);
  CHECK(describe(back.ranks[1].progress.collective) == "all_gather of 100 f32");
}

TEST_CASE("AgentLook: any cut or lengthened frame is refused", "[launcher]") {
  const std::string whole = encode_look({.now_ns = 1, .seconds = 1, .ranks = {{}}});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK_THROWS_AS(decode_look(whole.substr(0, size)), Error);
  }
  CHECK_THROWS_AS(decode_look(whole + "x"), Error);
}
