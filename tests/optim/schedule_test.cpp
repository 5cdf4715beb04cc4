#include "runtime/optim/schedule.h"

#include <vector>

#include <catch2/catch.hpp>

using dstrain::config::ScheduleSettings;
using dstrain::optim::learning_rate;

TEST_CASE("learning_rate: constant without a schedule", "[optim][schedule]") {
  CHECK(learning_rate({}, 0.25, 1) == 0.25);
  CHECK(learning_rate({}, 0.25, 1000) == 0.25);
}

TEST_CASE("learning_rate: WarmupLR follows DeepSpeed", "[optim][schedule]") {
  // The initial rate, then the rate after each scheduler step, as DeepSpeed 0.19.6 gives them.
  struct Row {
    bool linear;
    std::int64_t steps;
    double min;
    double max;
    std::vector<double> rates;
  };
  const auto row =
      GENERATE(Row{false, 5, 0.1, 0.2, {.1, .1, .143067656, .168260619, .186135312, .2, .2}},
               Row{true, 5, 0.1, 0.2, {.1, .1, .12, .14, .16, .18, .2, .2}},
               Row{false, 1, 0, 1, {0, 0, 1, 1, 1}});
  const ScheduleSettings schedule{ScheduleSettings::Kind::warmup_lr, row.min, row.max, row.steps,
                                  row.linear};
  for (std::size_t i = 0; i < row.rates.size(); ++i) {
    CAPTURE(row.linear, row.steps, i);
    CHECK(learning_rate(schedule, 0.5, static_cast<std::int64_t>(i) + 1) ==
          Approx(row.rates[i]).epsilon(1e-8));
  }
}

TEST_CASE("learning_rate: constant_with_warmup follows Hugging Face", "[optim][schedule]") {
  // get_constant_schedule_with_warmup(optimizer, 4): lr 1 at each update.
  ScheduleSettings schedule{ScheduleSettings::Kind::constant_with_warmup, 0, 1, 4};
  const std::vector<double> rates{0, 0.25, 0.5, 0.75, 1, 1};
  for (std::size_t i = 0; i < rates.size(); ++i) {
    CHECK(learning_rate(schedule, 1, static_cast<std::int64_t>(i) + 1) == rates[i]);
  }
  schedule.warmup_num_steps = 0;
  CHECK(learning_rate(schedule, 1, 2) == 1);
}
