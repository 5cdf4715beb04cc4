// Where shards and the optimizer's states lie, by limits of elements.
#include "zero/state_runs.h"

#include <catch2/catch.hpp>

#include "tests/support/toy_gpt2.h"

using namespace dstrain;
using zero::FlatLayout;

namespace {

/// Elements of a rank's shards whose home is `tier`, persistent segments left out.
std::int64_t elements_in(MemoryTier tier,
                         const FlatLayout& layout,
                         const std::vector<MemoryTier>& homes) {
  std::int64_t numel = 0;
  for (std::size_t i = 0; i < homes.size(); ++i) {
    const zero::Segment& segment = layout.segments()[i];
    if (homes[i] == tier && !segment.persistent) numel += segment.shard_numel;
  }
  return numel;
}

/// The homes when so many elements may stay in host memory.
std::vector<MemoryTier> homes_with(const FlatLayout& layout, std::int64_t in_host) {
  return zero::parameter_homes(layout,
                               {.parameters = MemoryTier::nvme, .parameters_in_host = in_host});
}

}  // namespace

TEST_CASE("StateRuns: no more parameters stay in host memory than may", "[zero][offload]") {
  const std::int64_t threshold = GENERATE(0, 600);
  const model::Model model = test::toy_gpt2();
  const FlatLayout layout(model, {.world = 2, .persistence_threshold_numel = threshold});
  const std::int64_t all = elements_in(MemoryTier::nvme, layout, homes_with(layout, 0));
  for (std::int64_t limit = 0; limit <= all; limit += 64) {
    CAPTURE(limit);
    const std::vector<MemoryTier> homes = homes_with(layout, limit);
    const std::int64_t stay = elements_in(MemoryTier::host, layout, homes);
    CHECK(stay <= limit);
    CHECK(stay + elements_in(MemoryTier::nvme, layout, homes) == all);
    for (std::size_t i = 0; i < homes.size(); ++i) {
      const zero::Segment& segment = layout.segments()[i];
      if (segment.persistent) CHECK(homes[i] == MemoryTier::device);
      if (homes[i] == MemoryTier::nvme) CHECK(stay + segment.shard_numel > limit);
    }
  }
  CHECK(elements_in(MemoryTier::host, layout, homes_with(layout, all)) == all);
}

TEST_CASE("StateRuns: states stay on the device up to their share", "[zero][offload]") {
  const model::Model model = test::toy_gpt2();
  const FlatLayout layout(model, {.world = 2});
  std::int64_t all = 0;
  for (const zero::Segment& segment : layout.segments()) all += segment.shard_numel;
  for (const double ratio : {0.0, 0.25, 0.5, 1.0}) {
    CAPTURE(ratio);
    const std::vector<MemoryTier> homes =
        zero::optimizer_homes(layout, {.optimizer = MemoryTier::host, .optimizer_ratio = ratio});
    std::int64_t stay = 0;
    for (std::size_t i = 0; i < homes.size(); ++i) {
      if (homes[i] == MemoryTier::device) stay += layout.segments()[i].shard_numel;
    }
    CHECK(static_cast<double>(stay) <= static_cast<double>(all) * (1 - ratio));
    if (ratio == 0) CHECK(stay == all);
    for (std::size_t i = 0; i < homes.size(); ++i) {
      if (homes[i] == MemoryTier::device) continue;
      CHECK(static_cast<double>(stay + layout.segments()[i].shard_numel) >
            static_cast<double>(all) * (1 - ratio));
    }
  }
}
