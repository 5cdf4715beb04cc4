
#include "runtime/config/resolve.h"
#include "tests/support/catch.h"

using namespace dstrain::config;

namespace {

Resolved resolved_overlap(const std::string& zero_section) {
  const std::string text =
      R"({"train_batch_size": 4, "zero_optimization": {)" + zero_section + "}}";
  return resolve_config({}, DsConfig::parse(text, "ds.json"), {.world_size = 2, .hidden = 100});
}

}  // namespace

TEST_CASE("Resolve: communication overlaps as in DeepSpeed", "[config][resolve]") {
  const auto zero_of = [](const std::string& section) {
    return resolved_overlap(section).settings.zero;
  };
  CHECK_FALSE(zero_of(R"("stage": 2)").overlap);
  CHECK(zero_of(R"("stage": 2, "overlap_comm": true)").overlap);
  CHECK_FALSE(zero_of(R"("stage": 3, "overlap_comm": false)").overlap);
  const ZeroSettings defaults = zero_of(R"("stage": 3, "overlap_comm": null)");
  CHECK(defaults.overlap);
  CHECK(defaults.prefetch_numel == 50'000'000);
  CHECK(defaults.live_numel == 1'000'000'000);
  CHECK(defaults.reuse_numel == 1'000'000'000);
  const ZeroSettings given =
      zero_of(R"("stage": 3, "stage3_prefetch_bucket_size": "auto", "stage3_max_live_parameters": 7,
                 "stage3_max_reuse_distance": 8)");
  CHECK(given.prefetch_numel == 9000);
  CHECK(given.live_numel == 7);
  CHECK(given.reuse_numel == 8);
}

TEST_CASE("Resolve: limits of gathering have no effect below stage 3", "[config][resolve]") {
  const Resolved result = resolved_overlap(R"("stage": 2, "stage3_max_live_parameters": 7)");
  REQUIRE(result.settings.warnings.size() == 1);
  CHECK(result.settings.warnings[0].find("has no effect at stage 2") != std::string::npos);
}
