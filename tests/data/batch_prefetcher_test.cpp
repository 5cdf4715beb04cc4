#include "runtime/data/batch_prefetcher.h"

#include <atomic>
#include <future>

#include "runtime/base/error.h"
#include "tests/support/catch.h"

using namespace dstrain;
using data::BatchPrefetcher;
using data::StepBatches;

namespace {

StepBatches one_token() {
  return {data::SampleBuffer(1, {1}), std::vector<std::int64_t>(1)};
}

void load_number(std::int64_t step, StepBatches& batches) {
  batches.samples.tokens[0] = static_cast<std::int32_t>(step);
  batches.samples.labels[0] = static_cast<std::int32_t>(step + 1);
  batches.first_samples[0] = 10 * step;
}

}  // namespace

TEST_CASE("BatchPrefetcher: gives each step its batch", "[data][prefetch]") {
  constexpr std::int64_t steps = 50;
  BatchPrefetcher prefetcher(load_number, steps, one_token());
  for (std::int64_t step = 0; step < steps; ++step) {
    const StepBatches& batches = prefetcher.take(step);
    REQUIRE(batches.samples.tokens[0] == step);
    REQUIRE(batches.samples.labels[0] == step + 1);
    REQUIRE(batches.first_samples[0] == 10 * step);
  }
}

TEST_CASE("BatchPrefetcher: any step can be asked for", "[data][prefetch]") {
  BatchPrefetcher prefetcher(load_number, 100, one_token());
  for (const std::int64_t step : {7, 8, 7, 6, 3, 3, 4, 99, 98, 97, 0, 2, 1}) {
    REQUIRE(prefetcher.take(step).samples.tokens[0] == step);
  }
  CHECK_THROWS_WITH(prefetcher.take(100), Catch::Matchers::ContainsSubstring("step 100 of 100"));
}

TEST_CASE("BatchPrefetcher: the next step is loaded while this one is in use", "[data][prefetch]") {
  std::promise<void> loaded;
  BatchPrefetcher prefetcher(
      [&](std::int64_t step, StepBatches& batches) {
        load_number(step, batches);
        if (step == 1) loaded.set_value();
      },
      2, one_token());
  const StepBatches& current = prefetcher.take(0);
  loaded.get_future().wait();  // without asking for it
  CHECK(current.samples.tokens[0] == 0);
  CHECK(prefetcher.take(1).samples.tokens[0] == 1);
}

TEST_CASE("BatchPrefetcher: an error is thrown at its own step", "[data][prefetch]") {
  BatchPrefetcher prefetcher(
      [](std::int64_t step, StepBatches& batches) {
        if (step == 2) fail(ErrorCode::input, "tokens.bin: position 12: id 99 is too large");
        load_number(step, batches);
      },
      5, one_token());
  CHECK(prefetcher.take(0).samples.tokens[0] == 0);
  CHECK(prefetcher.take(1).samples.tokens[0] == 1);
  CHECK_THROWS_WITH(prefetcher.take(2), "tokens.bin: position 12: id 99 is too large");
  CHECK_THROWS_WITH(prefetcher.take(2), "tokens.bin: position 12: id 99 is too large");
}

TEST_CASE("BatchPrefetcher: a step after one that failed is loaded", "[data][prefetch]") {
  bool fails = true;
  BatchPrefetcher prefetcher(
      [&](std::int64_t step, StepBatches& batches) {
        if (step == 0 && fails) fail(ErrorCode::input, "tokens.bin: cannot be read");
        load_number(step, batches);
      },
      5, one_token());
  CHECK_THROWS_WITH(prefetcher.take(0), "tokens.bin: cannot be read");
  CHECK(prefetcher.take(2).samples.tokens[0] == 2);  // in the same place
  CHECK(prefetcher.take(4).samples.tokens[0] == 4);
  fails = false;
  CHECK(prefetcher.take(0).samples.tokens[0] == 0);
}

TEST_CASE("BatchPrefetcher: does not load beyond the last step", "[data][prefetch]") {
  std::atomic<std::int64_t> highest{-1};
  {
    BatchPrefetcher prefetcher(
        [&](std::int64_t step, StepBatches& batches) {
          highest = std::max(highest.load(), step);
          load_number(step, batches);
        },
        3, one_token());
    for (std::int64_t step = 0; step < 3; ++step) prefetcher.take(step);
    prefetcher.take(0);  // comes after what the last one may have begun
  }
  CHECK(highest == 2);
}

TEST_CASE("BatchPrefetcher: may be destroyed while it loads", "[data][prefetch]") {
  std::promise<void> started;
  std::promise<void> open;
  std::thread opener;
  {
    BatchPrefetcher prefetcher(
        [&, gate = open.get_future().share()](std::int64_t step, StepBatches& batches) {
          load_number(step, batches);
          if (step == 0) return;
          started.set_value();
          gate.wait();
        },
        2, one_token());
    prefetcher.take(0);
    started.get_future().wait();
    opener = std::thread([&] { open.set_value(); });
  }
  opener.join();
}
