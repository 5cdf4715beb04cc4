// Traces of DeepSpeed's own scalers, recorded by running them: the scale after each step.
#include "runtime/optim/loss_scaler.h"

#include <optional>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace dstrain {
namespace {

using config::LossScaleSettings;
using Machine = LossScaleSettings::Machine;

struct Trace {
  LossScaleSettings settings;
  std::string steps;           ///< 'O': overflow
  std::vector<double> scales;  ///< shorter than `steps` where DeepSpeed stops
  std::vector<std::int64_t> hysteresis{};
};

LossScaleSettings zero(double initial, std::int64_t hysteresis, std::int64_t window) {
  return {.machine = Machine::zero, .initial = initial, .window = window, .hysteresis = hysteresis};
}

std::vector<Trace> traces() {
  LossScaleSettings consecutive = zero(65536, 2, 2);
  consecutive.consecutive_hysteresis = true;
  LossScaleSettings least = zero(12, 1, 1000);
  least.least = 5;
  LossScaleSettings fused = zero(256, 2, 2);
  fused.machine = Machine::fused;
  return {
      {zero(65536, 2, 2),
       "OOO...O.OO....",
       {65536, 32768, 16384, 16384, 16384, 32768, 32768, 32768, 16384, 8192, 8192, 8192, 16384,
        16384},
       {1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 2}},
      {consecutive,
       "OOO...O.OO....",
       {65536, 32768, 16384, 16384, 16384, 32768, 32768, 32768, 32768, 16384, 16384, 16384, 32768,
        32768},
       {1, 1, 1, 2, 2, 2, 1, 2, 1, 1, 2, 2, 2, 2}},
      {zero(256, 1, 2), "......", {256, 256, 512, 512, 1024, 1024}},
      {zero(16, 2, 1000), "OOOOOO", {16, 8, 4, 2, 1}},
      {least, "OOO", {6, 5}},
      {zero(256, 2, 3), ".....O.....", {256, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024}},
      {fused, "OO...O......", {128, 64, 64, 64, 128, 64, 64, 64, 128, 128, 256, 256}},
      {fused, "..........", {256, 256, 512, 512, 1024, 1024, 2048, 2048, 4096, 4096}}};
}

}  // namespace

TEST_CASE("LossScaler: follows DeepSpeed's", "[optim][loss_scale]") {
  const Trace trace = GENERATE(from_range(traces()));
  CAPTURE(trace.steps, trace.settings.initial);
  optim::LossScaler scaler(trace.settings);
  optim::LossScaler resumed(trace.settings);
  for (std::size_t i = 0; i < trace.scales.size(); ++i) {
    CAPTURE(i);
    const bool overflow = trace.steps[i] == 'O';
    REQUIRE_FALSE((overflow && scaler.is_exhausted()));
    scaler.update(overflow);
    CHECK(scaler.scale() == trace.scales[i]);
    if (!trace.hysteresis.empty()) CHECK(scaler.state().hysteresis == trace.hysteresis[i]);
    resumed.update(overflow);
    optim::LossScaler again(trace.settings);
    again.restore(resumed.state());
    resumed = again;
    CHECK(resumed.state() == scaler.state());
  }
  CHECK(scaler.is_exhausted() == (trace.scales.size() < trace.steps.size()));
}

TEST_CASE("LossScaler: a fixed scale stays", "[optim][loss_scale]") {
  optim::LossScaler scaler({.initial = 128});
  for (const bool overflow : {true, false, true, true}) {
    CHECK_FALSE(scaler.is_exhausted());
    scaler.update(overflow);
    CHECK(scaler.scale() == 128);
  }
  scaler.restore({.scale = 3});
  CHECK(scaler.scale() == 128);
}

TEST_CASE("LossScaler: the other machine ends at its least scale", "[optim][loss_scale]") {
  optim::LossScaler scaler({.machine = Machine::fused, .initial = 16});
  for (int i = 0; i < 100; ++i) scaler.update(true);
  CHECK(scaler.scale() == 1);
  CHECK_FALSE(scaler.is_exhausted());
}

}  // namespace dstrain
