#include "runtime/ops/lamb.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/device/cpu_stream.h"
#include "runtime/ops/decide_step.h"
#include "tests/ops/moment_state.h"
#include "tests/support/catch.h"
#include "tests/support/random_values.h"
#include "tests/support/tensor_compare.h"

namespace dstrain {
namespace {

using State = test::MomentState;

/// How a step is done, and on what.
struct Step {
  ops::LambSettings settings{};
  std::vector<float> gradients{};
  std::size_t piece = std::numeric_limits<std::size_t>::max();  ///< the parameter is cut into these
  std::vector<BFloat16> working{};                              ///< empty: not wanted
  ops::StepDecision decision{};
};

void update(State& state, Step& step) {
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  std::array<ExactSum::Digits, ops::lamb_sums> digits{};
  const HostView sums(&digits, DType::i64, {ops::lamb_sums, ops::lamb_sum_numel});
  ops::LambScalars scalars = ops::lamb_scalars(step.settings);
  const HostView scalar_view(&scalars, DType::f32, {ops::LambScalars::numel});
  const auto for_pieces = [&](const auto& work) {
    for (std::size_t begin = 0; begin < state.p.size();) {
      const std::size_t count = std::min(step.piece, state.p.size() - begin);
      const auto part = [&](auto& values) {
        if (values.empty()) return HostView();
        return HostView(std::span(values).subspan(begin, count),
                        Shape{static_cast<std::int64_t>(count)});
      };
      work(part);
      begin += count;
    }
  };
  for_pieces([&](const auto& part) {
    ops::lamb_measure({part(state.p), part(step.gradients), part(state.m), part(state.v),
                       scalar_view, sums, ops::view_of(step.decision)},
                      stream);
  });
  for_pieces([&](const auto& part) {
    ops::lamb_update({part(state.p), part(state.m), part(state.v), scalar_view, sums,
                      ops::view_of(step.decision), part(step.working)},
                     stream);
  });
}

/// The formula in double, in the form of the paper's pseudo-code.
std::vector<double> updated_in_double(const State& state, const Step& step) {
  const ops::LambSettings& s = step.settings;
  std::vector<double> update;
  double values_squared = 0;
  double update_squared = 0;
  for (std::size_t i = 0; i < state.p.size(); ++i) {
    const auto p = static_cast<double>(state.p[i]);
    const double g = static_cast<double>(step.gradients[i]) * step.decision.gradient_scale;
    const double m = s.beta1 * static_cast<double>(state.m[i]) + (1 - s.beta1) * g;
    const double v = s.beta2 * static_cast<double>(state.v[i]) + (1 - s.beta2) * g * g;
    const double root = s.eps_in_root ? std::sqrt(v + s.eps) : std::sqrt(v) + s.eps;
    update.push_back(m / root + s.weight_decay * p);
    values_squared += p * p;
    update_squared += update.back() * update.back();
  }
  const double ratio =
      std::clamp(std::sqrt(values_squared / update_squared), s.ratio_least, s.ratio_most);
  double rate = s.learning_rate;
  if (s.bias_correction) {
    const auto t = static_cast<double>(s.step);
    rate *= std::sqrt(1 - std::pow(s.beta2, t)) / (1 - std::pow(s.beta1, t));
  }
  for (std::size_t i = 0; i < update.size(); ++i) {
    update[i] = static_cast<double>(state.p[i]) - rate * ratio * update[i];
  }
  return update;
}

TEST_CASE("LAMB: agrees with the formula in double", "[ops][lamb]") {
  const std::int64_t numel = GENERATE(1, 63, 1000, 70'001);
  Step step{.settings = {.learning_rate = 3e-3, .weight_decay = 0.1},
            .gradients = test::random_values(numel, 4)};
  step.settings.bias_correction = GENERATE(true, false);
  step.settings.eps_in_root = GENERATE(true, false);
  step.settings.ratio_least = GENERATE(0.01, 5.0);  // the second is a bound that is met
  step.settings.step = GENERATE(1, 1000);
  step.decision.gradient_scale = 0.25;
  State state(numel);
  const std::vector<double> expected = updated_in_double(state, step);
  update(state, step);
  CHECK(test::difference(state.p, expected, test::tolerance::elementwise) == "");
}

TEST_CASE("LAMB: a parameter of zeros is updated as by Adam", "[ops][lamb]") {
  State state(100);
  std::fill(state.p.begin(), state.p.end(), 0.0F);
  std::fill(state.m.begin(), state.m.end(), 0.0F);
  std::fill(state.v.begin(), state.v.end(), 0.0F);
  Step step{.settings = {.learning_rate = 0.5, .eps = 1e-12},
            .gradients = test::random_values(100, 4)};
  update(state, step);
  for (std::size_t i = 0; i < state.p.size(); ++i) {
    CHECK(state.p[i] == Catch::Approx(std::copysign(0.5F, -step.gradients[i])).epsilon(1e-4));
  }
}

TEST_CASE("LAMB: a step that is decided against changes no state", "[ops][lamb]") {
  State state(1000);
  const State before = state;
  Step step{.gradients = std::vector<float>(1000, std::numeric_limits<float>::quiet_NaN()),
            .working = std::vector<BFloat16>(1000, BFloat16{0x1234}),
            .decision = {.taken = 0}};
  update(state, step);
  CHECK(state.p == before.p);
  CHECK(state.m == before.m);
  CHECK(state.v == before.v);
  for (std::size_t i = 0; i < step.working.size(); ++i) {
    CHECK((step.working[i] == to_bfloat16(before.p[i])));
  }
}

TEST_CASE("LAMB: the bits do not depend on how a parameter is cut", "[ops][lamb]") {
  constexpr std::int64_t numel = 70'001;
  Step step{.settings = {.weight_decay = 0.01, .step = 7},
            .gradients = test::random_values(numel, 4),
            .working = std::vector<BFloat16>(numel)};
  State whole(numel);
  update(whole, step);
  Step pieces = step;
  pieces.piece = GENERATE(64UL, 4096UL, 16'448UL);
  State cut(numel);
  update(cut, pieces);
  CHECK(whole.p == cut.p);
  CHECK(whole.m == cut.m);
  CHECK(whole.v == cut.v);
  CHECK((step.working == pieces.working));
  for (std::size_t i = 0; i < whole.p.size(); ++i) {
    CHECK((step.working[i] == to_bfloat16(whole.p[i])));
  }
}

}  // namespace
}  // namespace dstrain
