#include <catch2/catch.hpp>

#include "runtime/config/resolve.h"
#include "tests/config/support.h"

using namespace dstrain::config;
using dstrain::test::contains;

namespace {

/// What a zero_optimization section with these keys comes to.
TrainSettings settings_of(const std::string& keys) {
  const DsConfig config =
      DsConfig::parse(R"({"train_batch_size": 4, "zero_optimization": {)" + keys + "}}", "ds.json");
  return resolve_config({}, config, {.world_size = 2, .hidden = 100}).settings;
}

}  // namespace

TEST_CASE("Resolve: communication overlaps as in DeepSpeed", "[config][resolve]") {
  CHECK_FALSE(settings_of(R"("stage": 2)").zero.overlap);
  CHECK(settings_of(R"("stage": 2, "overlap_comm": true)").zero.overlap);
  CHECK_FALSE(settings_of(R"("stage": 3, "overlap_comm": false)").zero.overlap);
  CHECK(settings_of(R"("stage": 3, "overlap_comm": null)").zero.overlap);
}

TEST_CASE("Resolve: the limits of gathering ahead", "[config][resolve]") {
  const ZeroSettings defaults = settings_of(R"("stage": 3)").zero;
  CHECK(defaults.prefetch_numel == 50'000'000);
  CHECK(defaults.live_numel == 1'000'000'000);
  CHECK(defaults.reuse_numel == 1'000'000'000);
  const ZeroSettings given = settings_of(R"("stage": 3, "stage3_prefetch_bucket_size": "auto",
                     "stage3_max_live_parameters": 7, "stage3_max_reuse_distance": 8)")
                                 .zero;
  CHECK(given.prefetch_numel == 9000);
  CHECK(given.live_numel == 7);
  CHECK(given.reuse_numel == 8);
  const auto warnings = settings_of(R"("stage": 2, "stage3_max_live_parameters": 7)").warnings;
  REQUIRE(warnings.size() == 1);
  CHECK(contains(warnings[0], "has no effect at stage 2"));
}
