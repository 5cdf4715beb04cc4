#include "runtime/ops/adamw.h"

#include <cmath>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/ops/decide_step.h"
#include "tests/ops/moment_state.h"
#include "tests/support/catch.h"
#include "tests/support/random_values.h"
#include "tests/support/tensor_compare.h"

namespace dstrain {
namespace {

using State = test::MomentState;

void update(State& state,
            std::span<float> g,
            const ops::AdamWSettings& settings,
            std::size_t begin,
            std::size_t count,
            std::span<BFloat16> working = {},
            const TensorView& decision = {}) {
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  const Shape shape{static_cast<std::int64_t>(count)};
  const auto part = [&](std::span<float> values) {
    return HostView(values.subspan(begin, count), shape);
  };
  ops::AdamWScalars scalars = ops::adamw_scalars(settings);
  ops::adamw({.parameters = part(state.p),
              .gradients = part(g),
              .exp_avg = part(state.m),
              .exp_avg_sq = part(state.v),
              .scalars = ops::view_of(scalars),
              .decision = decision,
              .working = working.empty() ? HostView() : HostView(working, shape)},
             stream);
}

/// torch.optim.AdamW and Adam, line by line, in double.
void update_in_double(State& state,
                      const std::vector<float>& gradients,
                      const ops::AdamWSettings& s,
                      double gradient_scale,
                      std::vector<double>& expected) {
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    double p = static_cast<double>(state.p[i]);
    double g = static_cast<double>(gradients[i]) * gradient_scale;
    if (s.decoupled) {
      p *= 1 - s.learning_rate * s.weight_decay;
    } else {
      g += s.weight_decay * p;
    }
    const double m = s.beta1 * static_cast<double>(state.m[i]) + (1 - s.beta1) * g;
    const double v = s.beta2 * static_cast<double>(state.v[i]) + (1 - s.beta2) * g * g;
    const auto step = static_cast<double>(s.step);
    const double correction1 = s.bias_correction ? 1 - std::pow(s.beta1, step) : 1;
    const double correction2 = s.bias_correction ? 1 - std::pow(s.beta2, step) : 1;
    const double denominator = std::sqrt(v) / std::sqrt(correction2) + s.eps;
    expected.push_back(p - s.learning_rate / correction1 * m / denominator);
  }
}

TEST_CASE("AdamW: agrees with the formulas in double", "[ops][adamw]") {
  ops::AdamWSettings settings{.learning_rate = 3e-3, .weight_decay = 0.1};
  settings.decoupled = GENERATE(true, false);
  settings.bias_correction = GENERATE(true, false);
  settings.step = GENERATE(1, 1000);
  ops::StepDecision decision{.gradient_scale = GENERATE(1.0, 0.25)};
  State state(1000);
  std::vector<float> gradients = test::random_values(1000, 4);
  std::vector<double> expected;
  update_in_double(state, gradients, settings, decision.gradient_scale, expected);
  update(state, gradients, settings, 0, 1000, {}, ops::view_of(decision));
  CHECK(test::difference(state.p, expected, test::tolerance::elementwise) == "");
}

TEST_CASE("AdamW: a step that is decided against changes no state", "[ops][adamw]") {
  State state(1000);
  const State before = state;
  std::vector<float> gradients(1000, std::numeric_limits<float>::quiet_NaN());
  std::vector<BFloat16> working(1000, BFloat16{0x1234});
  ops::StepDecision decision{.taken = 0};
  update(state, gradients, {}, 0, 1000, working, ops::view_of(decision));
  CHECK(state.p == before.p);
  CHECK(state.m == before.m);
  CHECK(state.v == before.v);
  for (std::size_t i = 0; i < working.size(); ++i) {
    CHECK((working[i] == to_bfloat16(before.p[i])));
  }
}

TEST_CASE("AdamW: the bits do not depend on how a range is cut", "[ops][adamw]") {
  constexpr std::size_t numel = 50001;
  std::vector<float> gradients = test::random_values(numel, 4);
  const ops::AdamWSettings settings{.weight_decay = 0.01, .step = 7};
  State whole(numel);
  State cut(numel);
  update(whole, gradients, settings, 0, numel);
  const std::size_t piece = GENERATE(1UL, 7UL, 64UL, 16385UL);
  for (std::size_t begin = 0; begin < numel; begin += piece) {
    update(cut, gradients, settings, begin, std::min(piece, numel - begin));
  }
  CHECK(whole.p == cut.p);
  CHECK(whole.m == cut.m);
  CHECK(whole.v == cut.v);
}

TEST_CASE("AdamW: equals one element computed with fused multiply-adds", "[ops][adamw]") {
  State state(100);
  const State before = state;
  std::vector<float> gradients = test::random_values(100, 4);
  const ops::AdamWSettings settings{.weight_decay = 0.01, .step = 3};
  const ops::AdamWScalars s = ops::adamw_scalars(settings);
  update(state, gradients, settings, 0, 100);
  for (std::size_t i = 0; i < 100; ++i) {
    const float m = std::fma(s.one_minus_beta1, gradients[i] - before.m[i], before.m[i]);
    const float v = std::fma(s.beta2, before.v[i], s.one_minus_beta2 * gradients[i] * gradients[i]);
    const float denominator = std::sqrt(v) + s.eps;
    CHECK(state.p[i] == std::fma(-s.step_size, m / denominator, before.p[i] * s.decay_factor));
  }
}

TEST_CASE("AdamW: the working copy is the rounded parameters and changes no bit", "[ops][adamw]") {
  const auto numel = GENERATE(0UL, 1UL, 15UL, 17UL, 50001UL);
  std::vector<float> gradients = test::random_values(static_cast<std::int64_t>(numel), 4);
  const ops::AdamWSettings settings{.weight_decay = 0.01, .step = 3};
  State plain(static_cast<std::int64_t>(numel));
  State copied = plain;
  constexpr BFloat16 guard{0x1234};
  std::vector<BFloat16> working(numel + 1, guard);
  update(plain, gradients, settings, 0, numel);
  update(copied, gradients, settings, 0, numel, std::span(working).first(numel));
  CHECK(plain.p == copied.p);
  CHECK(plain.m == copied.m);
  CHECK(plain.v == copied.v);
  std::vector<BFloat16> expected;
  for (const float value : plain.p) expected.push_back(to_bfloat16(value));
  expected.push_back(guard);
  CHECK((working == expected));
}

TEST_CASE("AdamW: a parameter that is no number is none in the working copy", "[ops][adamw]") {
  State state(64);
  std::vector<float> gradients(64);
  gradients[3] = std::numeric_limits<float>::quiet_NaN();
  std::vector<BFloat16> working(64);
  update(state, gradients, {}, 0, 64, working);
  for (std::size_t i = 0; i < 64; ++i) CHECK(std::isnan(to_float(working[i])) == (i == 3));
}

TEST_CASE("AdamW: ranges of unequal length are refused", "[ops][adamw]") {
  State state(4);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  const HostView p(state.p, {4});
  const HostView m(state.m, {4});
  const HostView v(state.v, {4});
  ops::AdamWScalars values;
  const HostView scalars = ops::view_of(values);
  CHECK_THROWS_AS(ops::adamw({p, p.part(0, {3}), m, v, scalars}, stream), Error);
  std::vector<BFloat16> working(3);
  CHECK_THROWS_AS(ops::adamw({p, p, m, v, scalars, {}, HostView(working, {3})}, stream), Error);
}

}  // namespace
}  // namespace dstrain
