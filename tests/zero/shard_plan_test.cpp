// Where shards and the optimizer's states lie, by limits of elements.
#include "zero/shard_plan.h"

#include "tests/support/catch.h"
#include "tests/support/toy_gpt2.h"

using namespace dstrain;
using zero::FlatLayout;
using Tiers = TypedVector<zero::SegmentId, MemoryTier>;

namespace {

/// Elements of a rank's shards that lie in `tier`, persistent segments left out.
std::int64_t elements_in(MemoryTier tier, const FlatLayout& layout, const Tiers& tiers) {
  std::int64_t numel = 0;
  for (const zero::SegmentId id : tiers.ids()) {
    const zero::Segment& segment = layout.segment(id);
    if (tiers[id] == tier && !segment.persistent) numel += segment.shard_numel;
  }
  return numel;
}

/// The tiers when so many elements may stay in host memory.
Tiers tiers_with(const FlatLayout& layout, std::int64_t in_host) {
  return zero::parameter_tiers(layout,
                               {.parameters = MemoryTier::nvme, .parameters_in_host = in_host});
}

}  // namespace

TEST_CASE("ShardPlan: no more parameters stay in host memory than may", "[zero][offload]") {
  const std::int64_t threshold = GENERATE(0, 600);
  const model::Model model = test::toy_gpt2();
  const FlatLayout layout(model, {.world = 2, .persistence_threshold_numel = threshold});
  const std::int64_t all = elements_in(MemoryTier::nvme, layout, tiers_with(layout, 0));
  for (std::int64_t limit = 0; limit <= all; limit += 64) {
    CAPTURE(limit);
    const Tiers tiers = tiers_with(layout, limit);
    const std::int64_t stay = elements_in(MemoryTier::host, layout, tiers);
    CHECK(stay <= limit);
    CHECK(stay + elements_in(MemoryTier::nvme, layout, tiers) == all);
    for (const zero::SegmentId id : tiers.ids()) {
      const zero::Segment& segment = layout.segment(id);
      if (segment.persistent) CHECK(tiers[id] == MemoryTier::device);
      if (tiers[id] == MemoryTier::nvme) CHECK(stay + segment.shard_numel > limit);
    }
  }
  CHECK(elements_in(MemoryTier::host, layout, tiers_with(layout, all)) == all);
}

TEST_CASE("ShardPlan: states stay on the device up to their share", "[zero][offload]") {
  const model::Model model = test::toy_gpt2();
  const FlatLayout layout(model, {.world = 2});
  std::int64_t all = 0;
  for (const zero::Segment& segment : layout.segments()) all += segment.shard_numel;
  for (const double ratio : {0.0, 0.25, 0.5, 1.0}) {
    CAPTURE(ratio);
    const Tiers tiers =
        zero::optimizer_tiers(layout, {.optimizer = MemoryTier::host, .optimizer_ratio = ratio});
    std::int64_t stay = 0;
    for (const zero::SegmentId id : tiers.ids()) {
      if (tiers[id] == MemoryTier::device) stay += layout.segment(id).shard_numel;
    }
    CHECK(static_cast<double>(stay) <= static_cast<double>(all) * (1 - ratio));
    if (ratio == 0) CHECK(stay == all);
    for (const zero::SegmentId id : tiers.ids()) {
      if (tiers[id] == MemoryTier::device) continue;
      CHECK(static_cast<double>(stay + layout.segment(id).shard_numel) >
            static_cast<double>(all) * (1 - ratio));
    }
  }
}
