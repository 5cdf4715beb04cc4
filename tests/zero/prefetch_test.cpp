#include <algorithm>
#include <mutex>

#include "runtime/base/error.h"
#include "runtime/comm/thread/thread_communicator.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/model/random_source.h"
#include "tests/support/catch.h"
#include "tests/support/collective_watch.h"
#include "tests/support/ranks.h"
#include "tests/support/toy_gpt2.h"
#include "tests/zero/device_memory.h"

using namespace dstrain;
using model::PartId;

namespace {

constexpr std::int64_t everything = 1'000'000;
constexpr zero::Overlap no_limits{
    .enabled = true, .prefetch_numel = everything, .live_numel = everything};
/// Of the toy model: an embedding, six blocks, a head.
constexpr int last_block = 6;
constexpr int head = 7;

/// One rank that serves parameters in stage 3, every parameter sharded.
class PrefetchRank {
 public:
  PrefetchRank(comm::Communicator& communicator,
               const zero::Overlap& overlap,
               CpuStream::Mode mode,
               test::CollectiveWatch::Watch watch)
      : communication_(mode),
        watch_(communicator, std::move(watch)),
        store_({layout_, communicator, memory_.of_store()},
               {.stage = 3, .overlap = overlap},
               {compute_, communication_}) {
    store_.load({model::RandomSource(1, model_.parameters())}, compute_);
  }

  zero::ShardedStore& store() { return store_; }
  Stream& compute() { return compute_; }

 private:
  CpuStream compute_{CpuStream::Mode::inline_on_caller};
  CpuStream communication_;
  test::DeviceMemory memory_;
  model::Model model_ = test::toy_gpt2();
  zero::FlatLayout layout_{model_, {.world = 2}};
  test::CollectiveWatch watch_;
  zero::ShardedStore store_;
};

/// The operations that each acquire() of `units` launched, in order.
using Log = std::vector<std::vector<std::string>>;

/// Parts of the toy model, each of which is a unit.
using Units = std::vector<PartId>;

Log gathers_of(const Units& units, const zero::Overlap& overlap) {
  auto group = comm::make_thread_group(2);
  Log log;
  test::run_ranks(
      2,
      [&](int rank) {
        std::vector<std::string> now;
        // Inline, so that all an acquire() launches has run when it returns.
        PrefetchRank runner(*group[static_cast<std::size_t>(rank)], overlap,
                            CpuStream::Mode::inline_on_caller,
                            [&](const std::string& operation) { now.push_back(operation); });
        runner.store().expect(units, 1);
        for (const PartId unit : units) {
          now.clear();
          runner.store().acquire(unit, runner.compute());
          if (rank == 0) log.push_back(now);
          runner.store().release(unit, runner.compute());
        }
      },
      [&] { group.front()->abort(); });
  return log;
}

Units forward_units() {
  const IdRange<PartId> all(PartId{0}, PartId{head + 1});
  return {all.begin(), all.end()};
}

Units training_units() {
  Units units = forward_units();
  for (int unit = last_block; unit >= 0; --unit) units.push_back(PartId{unit});
  return units;
}

/// The all_gather of a segment, as the log has it.
std::string gather_of(const std::string& parameter) {
  const model::Model model = test::toy_gpt2();
  const zero::FlatLayout layout(model, {.world = 2});
  for (const zero::Placement& place : layout.parameters()) {
    if (place.spec.name != parameter) continue;
    return fmt::format("all_gather {}", layout.segment(place.segment).shard_numel * 4);
  }
  return "";
}

std::int64_t count(const Log& log, const std::string& operation) {
  std::int64_t found = 0;
  for (const auto& row : log) found += std::count(row.begin(), row.end(), operation);
  return found;
}

}  // namespace

TEST_CASE("Prefetch: the next unit is gathered when one is acquired", "[zero][prefetch]") {
  zero::Overlap none = no_limits;
  none.prefetch_numel = 0;
  const Log plain = gathers_of(forward_units(), none);
  const Log ahead = gathers_of(forward_units(), no_limits);
  REQUIRE(plain.size() == head + 1);
  CHECK(plain[1].size() == 1);
  CHECK(plain[head].size() == 1);  // its own; the embedding's weights are still there
  std::vector<std::string> first = plain[0];
  first.insert(first.end(), plain[1].begin(), plain[1].end());
  CHECK(ahead[0] == first);
  for (std::size_t i = 1; i < head; ++i) CHECK(ahead[i] == plain[i + 1]);
  CHECK(ahead[head].empty());
}

TEST_CASE("Prefetch: without overlap nothing is gathered ahead", "[zero][prefetch]") {
  const Log log = gathers_of(forward_units(), {.enabled = true});
  for (int block = 1; block <= last_block; ++block) {
    CHECK(log[static_cast<std::size_t>(block)].size() == 1);
  }
}

TEST_CASE("Prefetch: live elements stay within their limit", "[zero][prefetch]") {
  const model::Model model = test::toy_gpt2();
  const zero::FlatLayout layout(model, {.world = 2});
  std::int64_t two_blocks_and_embedding = 0;
  for (const zero::Segment& segment : layout.segments()) {
    if (segment.shared) two_blocks_and_embedding += segment.numel;
  }
  for (const int block : {1, 2}) {
    for (const zero::SegmentId segment : layout.part_segments(PartId{block})) {
      two_blocks_and_embedding += layout.segment(segment).numel;
    }
  }
  const std::int64_t missing = GENERATE(0, 1);
  zero::Overlap overlap = no_limits;
  overlap.live_numel = two_blocks_and_embedding - missing;
  const Log log = gathers_of(forward_units(), overlap);
  // The embedding leaves room for the first block, which was gathered with it. For the second and
  // the last there is room, or they come when they are acquired; the head's own part is small.
  const auto launched = [&](int unit) {
    return log[static_cast<std::size_t>(unit)].size();
  };
  CHECK(launched(1) == (missing == 0 ? 1 : 0));
  CHECK(launched(last_block) == (missing == 0 ? 1 : 2));
}

TEST_CASE("Prefetch: parameters with a distant next use are freed", "[zero][prefetch]") {
  zero::Overlap overlap = no_limits;
  const std::string embedding = gather_of("wte.weight");
  CHECK(count(gathers_of(training_units(), overlap), embedding) == 1);
  overlap.reuse_numel = 0;
  // For the embedding, for the head, and for the embedding's backward.
  CHECK(count(gathers_of(training_units(), overlap), embedding) == 3);
}

TEST_CASE("Prefetch: parameters whose next use is exactly at the limit are kept",
          "[zero][prefetch]") {
  const std::int64_t missing = GENERATE(0, 1);
  zero::Overlap overlap = no_limits;
  // The head borrows the embedding's weights after six blocks.
  const zero::FlatLayout layout(test::toy_gpt2(), {.world = 2});
  overlap.reuse_numel = -missing;
  for (int block = 1; block <= last_block; ++block) {
    for (const zero::SegmentId segment : layout.part_segments(PartId{block})) {
      overlap.reuse_numel += layout.segment(segment).numel;
    }
  }
  CHECK(count(gathers_of(forward_units(), overlap), gather_of("wte.weight")) == 1 + missing);
}

TEST_CASE("Prefetch: gathering ahead stops at the limit", "[zero][prefetch]") {
  const model::Model model = test::toy_gpt2();
  const zero::FlatLayout layout(model, {.world = 2});
  const std::vector<zero::SegmentId>& segments = layout.part_segments(PartId{0});
  REQUIRE(segments.size() == 2);
  const std::int64_t more = GENERATE(0, 1);
  zero::Overlap overlap = no_limits;
  overlap.prefetch_numel = layout.segment(segments.front()).numel + more;
  const Log log = gathers_of({PartId{1}, PartId{0}}, overlap);  // with the embedding after a block
  CHECK(log[0].size() == static_cast<std::size_t>(2 + more));
  CHECK(log[1].size() == static_cast<std::size_t>(1 - more));
}

TEST_CASE("Prefetch: a unit nobody expected is gathered too", "[zero][prefetch]") {
  auto group = comm::make_thread_group(2);
  test::run_ranks(2, [&](int rank) {
    PrefetchRank runner(*group[static_cast<std::size_t>(rank)], no_limits,
                        CpuStream::Mode::worker_thread, [](const std::string&) {});
    const Units expected{PartId{0}, PartId{1}, PartId{2}};
    runner.store().expect(expected, 2);
    for (const int unit : {0, 5, 1, 2, 0}) {
      runner.store().acquire(PartId{unit}, runner.compute());
      runner.store().release(PartId{unit}, runner.compute());
    }
  });
  SUCCEED("no hang, no check failed");
}

TEST_CASE("Prefetch: a failure is thrown by the next acquire", "[zero][prefetch][fault]") {
  auto group = comm::make_thread_group(2);
  std::vector<int> acquired(2, 0);
  const auto run = [&] {
    test::run_ranks(
        2,
        [&](int rank) {
          int gathers = 0;
          PrefetchRank runner(*group[static_cast<std::size_t>(rank)], no_limits,
                              CpuStream::Mode::worker_thread, [&](const std::string&) {
                                // The segments of the embedding, then of two blocks.
                                if (rank == 0 && ++gathers == 4)
                                  fail(ErrorCode::comm, "rank 1 is gone");
                              });
          const Units units = forward_units();
          runner.store().expect(units, 1);
          for (const PartId unit : units) {
            runner.store().acquire(unit, runner.compute());
            ++acquired[static_cast<std::size_t>(rank)];
            runner.store().release(unit, runner.compute());
          }
        },
        [&] { group.front()->abort(); });
  };
  CHECK_THROWS_WITH(run(), "rank 1 is gone");
  CHECK(acquired[0] <= 2);  // the unit that computes while it happens, and no further
}

TEST_CASE("Prefetch: a store may be destroyed while a unit is being gathered",
          "[zero][prefetch][fault]") {
  auto group = comm::make_thread_group(2);
  test::run_ranks(2, [&](int rank) {
    PrefetchRank runner(*group[static_cast<std::size_t>(rank)], no_limits,
                        CpuStream::Mode::worker_thread, [](const std::string&) {});
    const Units units = forward_units();
    runner.store().expect(units, 1);
    runner.store().acquire(PartId{0}, runner.compute());
  });
  SUCCEED("no hang, and the memory stayed while it was written");
}
