#include <vector>

#include "runtime/data/sample_order.h"
#include "tests/support/catch.h"

using dstrain::data::split_samples;

TEST_CASE("SampleSplit: parts are rounded as Megatron does", "[data]") {
  struct Row {
    std::int64_t samples;
    std::vector<double> weights;
    std::int64_t training;
    std::int64_t validation;
  };
  // get_train_valid_test_split_() of Megatron-LM gives these ends: 949, 999, 1000 of 1000; ...
  const Row row = GENERATE(values<Row>({
      {1000, {949, 50, 1}, 949, 50},
      {100, {949, 50, 1}, 95, 5},
      {10, {949, 50, 1}, 10, 0},
      {7, {969, 30, 1}, 7, 0},
      {10, {1, 1, 1}, 4, 3},
      {10, {1, 0, 0}, 10, 0},
      {10, {0.5, 0.5, 0}, 5, 5},
      {5, {1, 1, 0}, 3, 2},
  }));
  CAPTURE(row.samples, row.weights);
  const auto [training, validation] = split_samples(row.samples, row.weights);
  CHECK(training.first == 0);
  CHECK(training.count == row.training);
  CHECK(validation.first == row.training);
  CHECK(validation.count == row.validation);
}
