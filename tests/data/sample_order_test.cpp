#include "runtime/data/sample_order.h"

#include <set>

#include "tests/data/token_files.h"
#include "tests/support/catch.h"

namespace dstrain::test {

using data::SampleOrder;

TEST_CASE("SampleOrder: an epoch's last step uses the samples that are left", "[data][order]") {
  const SampleOrder order({.samples = 10, .global_batch = 4, .shuffle = false});
  CHECK(order.steps_per_epoch() == 3);
  CHECK(order.epoch_of(2) == 0);
  CHECK(order.epoch_of(3) == 1);
  CHECK(order.batch_size(1) == 4);
  CHECK(order.batch_size(2) == 2);
  CHECK(order.batch_size(3) == 4);
  CHECK(order.sample(1, 3) == 7);
  CHECK(order.sample(2, 1) == 9);
  CHECK(order.sample(3, 0) == 0);
  CHECK_THROWS(order.sample(2, 2));
  CHECK(order.samples_of(2) == 8);
  CHECK(order.samples_of(3) == 10);
  CHECK(order.samples_of(7) == 24);
}

TEST_CASE("SampleOrder: an epoch's last step may drop the samples that are left", "[data][order]") {
  const SampleOrder order({.samples = 10, .global_batch = 4, .shuffle = false, .drop_last = true});
  CHECK(order.steps_per_epoch() == 2);
  CHECK(order.epoch_of(1) == 0);
  CHECK(order.epoch_of(2) == 1);
  CHECK(order.batch_size(1) == 4);
  CHECK(order.sample(1, 3) == 7);
  CHECK(order.sample(2, 0) == 0);
  CHECK(order.sample(3, 1) == 5);
  CHECK(order.samples_of(3) == 12);
}

TEST_CASE("SampleOrder: the data begin anew within an epoch", "[data][order]") {
  const bool shuffle = GENERATE(false, true);
  data::OrderOptions options{.samples = 10, .global_batch = 4, .shuffle = shuffle, .seed = 5};
  const SampleOrder usual(options);
  options.anew_at = 4;  // the second step of the second epoch
  const SampleOrder order(options);
  CHECK(order.epoch_of(4) == 1);
  CHECK(order.step_in_epoch(4) == 0);
  CHECK(order.epoch_of(7) == 2);
  for (std::int64_t step = 4; step < 12; ++step) {
    CAPTURE(step);
    REQUIRE(order.batch_size(step) == usual.batch_size(step - 1));
    for (std::int64_t place = 0; place < order.batch_size(step); ++place) {
      CHECK(order.sample(step, place) == usual.sample(step - 1, place));
    }
  }
  CHECK(order.samples_of(6) - order.samples_of(4) == 8);
  CHECK(order.samples_of(8) - order.samples_of(4) == 14);
}

TEST_CASE("SampleOrder: a shuffled epoch takes each sample once", "[data][order]") {
  const bool drop_last = GENERATE(false, true);
  const SampleOrder order({.samples = 103, .global_batch = 10, .drop_last = drop_last, .seed = 9});
  const std::int64_t taken = drop_last ? 100 : 103;
  std::vector<std::set<std::int64_t>> epochs(2);
  for (std::int64_t step = 0; step < 2 * order.steps_per_epoch(); ++step) {
    for (std::int64_t place = 0; place < order.batch_size(step); ++place) {
      const std::int64_t sample = order.sample(step, place);
      CHECK((sample >= 0 && sample < 103));
      epochs.at(static_cast<std::size_t>(order.epoch_of(step))).insert(sample);
    }
  }
  CHECK(std::ssize(epochs[0]) == taken);
  CHECK(std::ssize(epochs[1]) == taken);
  CHECK(order.samples_of(2 * order.steps_per_epoch()) == 2 * taken);
  CHECK(order.sample(0, 0) != order.sample(order.steps_per_epoch(), 0));
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

TEST_CASE("SampleOrder: data below one batch is one step or none", "[data][order]") {
  CHECK(SampleOrder({.samples = 7, .global_batch = 8}).steps_per_epoch() == 1);
  CHECK(SampleOrder({.samples = 8, .global_batch = 8, .drop_last = true}).steps_per_epoch() == 1);
  CHECK(error_of([] { SampleOrder({.samples = 7, .global_batch = 8, .drop_last = true}); }) ==
        "the training data holds 7 samples, fewer than the 8 of one step (train_batch_size), and "
        "--dataloader_drop_last leaves them out; give more data or a smaller batch");
}

}  // namespace dstrain::test
