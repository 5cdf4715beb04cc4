// Strangers that find the ports of ranks which are about to connect over gloo.
#include <catch2/catch.hpp>

#include "runtime/base/worker_env.h"
#include "runtime/comm/gloo/gloo_transport.h"
#include "tests/support/rank_process.h"
#include "tests/support/skip.h"

using namespace dstrain;
using Catch::Matchers::Contains;

/// The bytes of a message that nobody awaits make gloo's own thread throw.
TEST_CASE("Gloo: no stranger ends a rank without a word", "[comm]") {
  if (!comm::has_gloo()) test::skip("this build has no gloo (libgloo-dev)");
  const std::string words = GENERATE("silent", "random", "0", "1", "2", "3");
  CAPTURE(words);
  test::RankProcess rank({{DSTRAIN_STRANGER_RANK, words}, {"RANK=1"}});
  const std::string output = rank.read_all();
  CAPTURE(output);
  const int ended = rank.wait();
  const bool by_rule = ended == status::failed || ended == status::timed_out;
  CHECK((ended == status::done || (by_rule && output.find("rank ") != std::string::npos)));
  CHECK(output.find("terminate called") == std::string::npos);
  if (words == "1") {
    CHECK(ended == status::failed);
    CHECK_THAT(output, Contains("rank 1 ends by an exception that nobody caught: gloo::"));
  }
}
