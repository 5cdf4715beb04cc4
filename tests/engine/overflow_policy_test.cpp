#include "runtime/engine/overflow_policy.h"

#include <limits>

#include "tests/support/catch.h"
#include "tests/support/error_of.h"

namespace dstrain {
namespace {

using config::LossScaleSettings;
using engine::OverflowPolicy;

constexpr ops::StepDecision taken{.loss = 2, .gradient_norm = 1};
constexpr ops::StepDecision refused{
    .loss = 2, .gradient_norm = std::numeric_limits<double>::infinity(), .taken = 0};

OverflowPolicy::Options scaled(double initial) {
  return {.loss_scale = {.machine = LossScaleSettings::Machine::zero, .initial = initial},
          .most_in_row = 100};
}

}  // namespace

TEST_CASE("OverflowPolicy: without permission to skip the first overflow ends the run",
          "[engine]") {
  OverflowPolicy policy({}, {});
  policy.settle(1, taken);
  CHECK_FALSE(policy.skips());
  CHECK_THAT(test::error_of([&] { policy.settle(2, refused); }),
             Catch::Matchers::ContainsSubstring(
                 "step 2: the loss is 2 and the gradient norm is inf; the step was not "
                 "taken. Lower the learning rate"));
}

TEST_CASE("OverflowPolicy: skips up to the limit of consecutive overflows", "[engine]") {
  OverflowPolicy policy({.most_in_row = 2}, {});
  for (const int round : {1, 2}) {
    CAPTURE(round);
    policy.settle(1, refused);
    policy.settle(2, refused);
    policy.settle(3, taken);
  }
  CHECK(policy.state().skipped_steps == 4);
  CHECK(policy.loss_scale() == 1);
  policy.settle(1, refused);
  CHECK(policy.describe_skip(1, refused, "h.0.ln_1.weight") ==
        "step 1: OVERFLOW! gradients of h.0.ln_1.weight are not finite: the step is left out, 1 in "
        "a row of at most 2");
  policy.settle(2, refused);
  CHECK_THAT(test::error_of([&] { policy.settle(3, refused); }),
             Catch::Matchers::ContainsSubstring("after 2 others in a row"));
}

TEST_CASE("OverflowPolicy: the loss scale shrinks to its minimum", "[engine]") {
  OverflowPolicy policy(scaled(4), {});
  policy.settle(1, refused);
  CHECK(policy.describe_skip(1, refused, "") ==
        "step 1: OVERFLOW! gradients are not finite: the step is left out; the loss scale stays 4, "
        "hysteresis is 1");
  constexpr ops::StepDecision lost{.loss = std::numeric_limits<double>::infinity(), .taken = 0};
  CHECK_THAT(
      policy.describe_skip(1, lost, "w"),
      Catch::Matchers::ContainsSubstring("OVERFLOW! the loss is inf before it is scaled: the"));
  policy.settle(2, refused);
  CHECK_THAT(policy.describe_skip(2, refused, "w"),
             Catch::Matchers::ContainsSubstring("the loss scale is 2 now, and was 4"));
  policy.settle(3, refused);
  CHECK(policy.loss_scale() == 1);
  CHECK_THAT(test::error_of([&] { policy.settle(4, refused); }),
             Catch::Matchers::ContainsSubstring("The loss scale is at its minimum, 1"));
}

TEST_CASE("OverflowPolicy: a loss that is not finite is not blamed on the scale", "[engine]") {
  constexpr ops::StepDecision lost{
      .loss = std::numeric_limits<double>::quiet_NaN(), .gradient_norm = 1, .taken = 0};
  OverflowPolicy::Options options{.scales = true};
  const auto error = [&] {
    OverflowPolicy policy(options, {});
    return test::error_of([&] {
      for (int step = 1; step < 9; ++step) policy.settle(step, lost);
    });
  };
  const auto check = [&] {
    CHECK_THAT(error(), Catch::Matchers::ContainsSubstring("no loss scale helps") &&
                            Catch::Matchers::ContainsSubstring("Use bf16 or fp32") &&
                            !Catch::Matchers::ContainsSubstring("loss_scale"));
  };
  check();
  options.most_in_row = 3;
  check();
  options = scaled(4);
  options.scales = true;
  check();
}

TEST_CASE("OverflowPolicy: resumes where it was", "[engine]") {
  OverflowPolicy first(scaled(1024), {});
  for (int step = 1; step <= 3; ++step) first.settle(step, refused);
  const OverflowPolicy::State state = first.state();
  OverflowPolicy second(scaled(1024), state);
  CHECK(second.loss_scale() == 256);
  CHECK(second.state().skipped_steps == 3);
  first.settle(4, refused);
  second.settle(4, refused);
  CHECK(second.state().loss_scaler == first.state().loss_scaler);
}

TEST_CASE("OverflowPolicy: consecutive overflows are counted across a resume", "[engine]") {
  OverflowPolicy first({.most_in_row = 2}, {});
  first.settle(1, refused);
  first.settle(2, refused);
  const OverflowPolicy::State state = first.state();
  CHECK_FALSE(state.loss_scaler);
  OverflowPolicy second({.most_in_row = 2}, state);
  CHECK_THAT(test::error_of([&] { second.settle(3, refused); }),
             Catch::Matchers::ContainsSubstring("after 2 others in a row"));
}

TEST_CASE("OverflowPolicy: a loss that was not scaled leaves no scale behind", "[engine]") {
  OverflowPolicy plain({}, {});
  plain.settle(1, taken);
  const OverflowPolicy::State state = plain.state();
  CHECK(OverflowPolicy(scaled(1024), state).loss_scale() == 1024);
}

}  // namespace dstrain
