#include "zero/flat_layout.h"

#include <map>
#include <set>

#include "tests/support/catch.h"
#include "tests/support/toy_gpt2.h"

using namespace dstrain;

TEST_CASE("FlatLayout: every element has one place", "[zero][layout]") {
  const model::Model model = test::toy_gpt2();
  const int world = GENERATE(1, 2, 3, 5, 8);
  const std::int64_t threshold = GENERATE(0, 600, 1'000'000);
  const zero::FlatLayout layout(model, {world, threshold});
  CHECK(layout.numel() == model.parameter_count());
  TypedVector<zero::SegmentId, std::vector<bool>> used;
  for (const zero::Segment& segment : layout.segments()) {
    CHECK(segment.numel == segment.shard_numel * world);
    CHECK(segment.shard_numel % zero::layout_alignment == 0);
    used.push_back(std::vector<bool>(static_cast<std::size_t>(segment.numel), false));
  }
  bool overlap = false;
  for (const zero::Placement& place : layout.parameters()) {
    CHECK(place.offset % zero::layout_alignment == 0);
    auto& segment = used[place.segment];
    for (std::int64_t i = 0; i < place.spec.shape.numel(); ++i) {
      const auto at = static_cast<std::size_t>(place.offset + i);
      overlap = overlap || segment.at(at);
      segment.at(at) = true;
    }
  }
  CHECK(!overlap);
}

TEST_CASE("FlatLayout: segments hold one class each", "[zero][layout]") {
  const model::Model model = test::toy_gpt2();
  const zero::FlatLayout layout(model, {2, 600});
  for (const zero::Segment& segment : layout.segments()) {
    for (const zero::ParameterId id : segment.parameters) {
      const zero::Placement& place = layout.parameter(id);
      CHECK(segment.shared == (place.spec.name == "wte.weight"));
      if (!segment.shared) CHECK(segment.persistent == (place.spec.shape.numel() < 600));
    }
  }
}

TEST_CASE("FlatLayout: borrowed parameters are found at their owner", "[zero][layout]") {
  const model::Model model = test::toy_gpt2();
  const zero::FlatLayout layout(model, {2, 0});
  const model::PartId head = layout.parts().back();
  const zero::ParameterId borrowed = layout.part_parameters(head).back();
  CHECK(layout.parameter(borrowed).spec.name == "wte.weight");
  CHECK(layout.part_parameters(model::PartId{0}).front() == borrowed);
  CHECK(layout.part_segments(head).back() == layout.parameter(borrowed).segment);
}

TEST_CASE("FlatLayout: tiles have segments of their own and tile their parameters",
          "[zero][layout]") {
  const std::int64_t splits = GENERATE(2, 5, 1000);
  const model::Model model = test::toy_gpt2(DType::f32, splits);
  const zero::FlatLayout layout(model, {3, 200});
  REQUIRE(layout.parts().back() == model.parts().ids().back());
  std::map<std::string, std::int64_t> placed;
  std::int64_t tiles = 0;
  for (const zero::Placement& place : layout.parameters()) {
    CHECK(place.begin == placed[place.spec.name]);
    placed[place.spec.name] += place.shape.numel();
    const zero::Segment& segment = layout.segment(place.segment);
    CHECK(segment.tile == (place.shape != place.spec.shape));
    if (!segment.tile) continue;
    ++tiles;
    CHECK(segment.parameters.size() == 1);
    CHECK_FALSE((segment.persistent || segment.shared));
  }
  for (const model::ParameterSpec& spec : model.parameters()) {
    CHECK(placed.at(spec.name) == spec.shape.numel());
  }
  CHECK(tiles == 6 * (splits == 1000 ? 3 * 24 + 96 : 4 * splits));
}

TEST_CASE("FlatLayout: as many elements as the threshold are sharded", "[zero][layout]") {
  const model::Model model = test::toy_gpt2();
  constexpr std::int64_t numel = 24 * 24;  // of the attention's output weights
  const std::int64_t above = GENERATE(0, 1);
  const zero::FlatLayout layout(model, {2, numel + above});
  int seen = 0;
  for (const zero::Placement& place : layout.parameters()) {
    if (place.spec.shape.numel() != numel) continue;
    ++seen;
    CHECK(layout.segment(place.segment).persistent == (above == 1));
  }
  CHECK(seen == 6);
}

TEST_CASE("FlatLayout: as many persistent elements as the total are kept", "[zero][layout]") {
  const model::Model model = test::toy_gpt2();
  constexpr std::int64_t numel = 24 * 24;
  const std::int64_t missing = GENERATE(0, 1);
  // The biases and norms of the embedding's unit and of the first block come first.
  std::int64_t total = 0;
  const zero::FlatLayout unlimited(model, {.world = 2, .persistence_threshold_numel = numel + 1});
  for (const zero::Placement& place : unlimited.parameters()) {
    if (place.spec.shape.numel() > numel || place.spec.name == "wte.weight") continue;
    total += place.spec.shape.numel();
    if (place.spec.shape.numel() == numel) break;
  }
  const zero::FlatLayout layout(model, {.world = 2,
                                        .persistence_threshold_numel = numel + 1,
                                        .persistence_total_numel = total - missing});
  std::int64_t kept = 0;
  for (const zero::Placement& place : layout.parameters()) {
    const bool persistent = layout.segment(place.segment).persistent;
    if (persistent && place.spec.shape.numel() == numel) ++kept;
  }
  CHECK(kept == 1 - missing);
}

TEST_CASE("FlatLayout: persistent parameters stop at their total", "[zero][layout]") {
  const model::Model model = test::toy_gpt2();
  const zero::FlatLayout layout(
      model, {.world = 2, .persistence_threshold_numel = 600, .persistence_total_numel = 1000});
  std::int64_t persistent = 0;
  for (const zero::Placement& place : layout.parameters()) {
    if (layout.segment(place.segment).persistent) persistent += place.spec.shape.numel();
  }
  CHECK(persistent <= 1000);
  CHECK(persistent > 0);
}
