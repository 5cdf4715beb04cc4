#include "runtime/data/sample_order.h"

#include <set>

#include "tests/data/token_files.h"
#include "tests/support/catch.h"

namespace dstrain::test {

using data::SampleOrder;

TEST_CASE("SampleOrder: file order drops the end of an epoch", "[data][order]") {
  const SampleOrder order({.samples = 10, .global_batch = 4, .shuffle = false});
  CHECK(order.steps_per_epoch() == 2);
  CHECK(order.epoch_of(1) == 0);
  CHECK(order.epoch_of(2) == 1);
  CHECK(order.sample(0, 0) == 0);
  CHECK(order.sample(1, 3) == 7);
  CHECK(order.sample(2, 0) == 0);
  CHECK(order.sample(3, 1) == 5);
}

TEST_CASE("SampleOrder: a shuffled epoch takes each sample at most once", "[data][order]") {
  const SampleOrder order({.samples = 103, .global_batch = 10, .seed = 9});
  std::vector<std::set<std::int64_t>> epochs(2);
  for (std::int64_t step = 0; step < 20; ++step) {
    for (std::int64_t place = 0; place < 10; ++place) {
      const std::int64_t sample = order.sample(step, place);
      CHECK((sample >= 0 && sample < 103));
      epochs.at(static_cast<std::size_t>(order.epoch_of(step))).insert(sample);
    }
  }
  CHECK(epochs[0].size() == 100);
  CHECK(epochs[1].size() == 100);
  CHECK(order.sample(0, 0) != order.sample(10, 0));
}

TEST_CASE("SampleOrder: no epoch repeats the order of another", "[data][order]") {
  const bool shuffle = GENERATE(true, false);
  const SampleOrder order({.samples = 64, .global_batch = 8, .shuffle = shuffle, .seed = 9});
  std::set<std::vector<std::int64_t>> orders;
  constexpr std::int64_t epochs = 40;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    std::vector<std::int64_t> samples;
    for (std::int64_t step = 8 * epoch; step < 8 * (epoch + 1); ++step) {
      for (std::int64_t place = 0; place < 8; ++place) samples.push_back(order.sample(step, place));
    }
    orders.insert(samples);
  }
  CHECK(orders.size() == (shuffle ? epochs : 1));
}

TEST_CASE("SampleOrder: data below one batch is refused", "[data][order]") {
  CHECK(SampleOrder({.samples = 8, .global_batch = 8}).steps_per_epoch() == 1);
  CHECK(error_of([] { SampleOrder({.samples = 7, .global_batch = 8}); }) ==
        "the training data holds 7 samples, fewer than the 8 of one step (train_batch_size); give "
        "more text, a smaller batch or a smaller block_size");
}

}  // namespace dstrain::test
