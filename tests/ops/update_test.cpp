#include "runtime/ops/update.h"

#include <cmath>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/ops/decide_step.h"
#include "tests/support/catch.h"
#include "tests/support/every_rule.h"
#include "tests/support/random_values.h"
#include "tests/support/tensor_compare.h"

namespace dstrain {
namespace {

constexpr std::size_t uncut = std::numeric_limits<std::size_t>::max();

/// A parameter with the states of any rule: the second is positive, as Adam's is.
struct Values {
  explicit Values(std::int64_t numel)
      : p(test::random_values(numel, 1)),
        states{test::random_values(numel, 2, 0.1F), test::random_values(numel, 3, 0.01F)} {
    for (float& value : states[1]) value = value * value;
  }
  friend bool operator==(const Values&, const Values&) = default;
  std::vector<float> p;
  std::array<std::vector<float>, rules::states_max> states;
};

struct Update {
  rules::Settings settings{};
  rules::Step step{.number = 3, .learning_rate = 1e-3};
  std::vector<float> gradients{};
  std::size_t piece = uncut;        ///< elements of a call
  std::vector<BFloat16> working{};  ///< empty: not wanted
  ops::StepDecision decision{};
};

void apply(Update& update, Values& values) {
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  std::array<ExactSum::Digits, ops::norm_sums> digits{};
  rules::ScalarValues scalars = rules::scalars(update.settings, update.step);
  const std::size_t states = rules::state_names(update.settings).size();
  const auto for_pieces = [&](const auto& work) {
    for (std::size_t begin = 0; begin == 0 || begin < values.p.size();) {
      const std::size_t count = std::min(update.piece, values.p.size() - begin);
      const auto part = [&](auto& all) {
        return HostView(std::span(all).subspan(begin, count),
                        Shape{static_cast<std::int64_t>(count)});
      };
      ops::UpdateArgs args{
          .rule = update.settings.index(),
          .parameters = part(values.p),
          .gradients = part(update.gradients),
          .scalars = ops::view_of(scalars),
          .sums = HostView(&digits, DType::i64, {ops::norm_sums, ops::norm_sum_numel}),
          .decision = ops::view_of(update.decision),
          .working = update.working.empty() ? HostView() : part(update.working)};
      for (std::size_t i = 0; i < states; ++i) args.states[i] = part(values.states[i]);
      work(args);
      if (count == 0) return;
      begin += count;
    }
  };
  if (rules::is_layerwise(update.settings)) {
    for_pieces([&](const ops::UpdateArgs& args) { ops::measure_update(args, stream); });
  }
  for_pieces([&](const ops::UpdateArgs& args) { ops::update(args, stream); });
}

std::vector<rules::Settings> all_rules() {
  std::vector<rules::Settings> all = test::every_rule();
  all.emplace_back(rules::Adam::Settings{.weight_decay = 0.1, .decoupled_decay = false});
  return all;
}

std::vector<rules::Settings> elementwise_rules() {
  std::vector<rules::Settings> all = all_rules();
  std::erase_if(all, [](const rules::Settings& rule) { return rules::is_layerwise(rule); });
  return all;
}

// The formulas of the papers, line by line, in double.

struct InDouble {
  explicit InDouble(const Values& values, const Update& update, std::size_t i)
      : p(static_cast<double>(values.p[i])),
        g(static_cast<double>(update.gradients[i]) * update.decision.gradient_scale),
        m(static_cast<double>(values.states[0][i])),
        v(static_cast<double>(values.states[1][i])) {}
  double p;
  double g;
  double m;
  double v;
};

double correction(double beta, std::int64_t step) {
  return 1 - std::pow(beta, static_cast<double>(step));
}

TEST_CASE("AdamW: agrees with the formulas in double", "[ops][update]") {
  rules::Adam::Settings s{.weight_decay = 0.1};
  s.decoupled_decay = GENERATE(true, false);
  s.bias_correction = GENERATE(true, false);
  Update update{.step = {.number = GENERATE(1, 1000), .learning_rate = 3e-3},
                .gradients = test::random_values(1000, 4),
                .decision = {.gradient_scale = GENERATE(1.0, 0.25)}};
  if (GENERATE(false, true)) update.step.betas = rules::Betas{0.8, 0.95};
  update.settings = s;
  const rules::Betas betas = update.step.betas.value_or(s.betas);
  const double rate = update.step.learning_rate;
  Values values(1000);
  std::vector<double> expected;
  for (std::size_t i = 0; i < values.p.size(); ++i) {
    InDouble x(values, update, i);
    if (s.decoupled_decay) {
      x.p *= 1 - rate * s.weight_decay;
    } else {
      x.g += s.weight_decay * x.p;
    }
    x.m = betas.beta1 * x.m + (1 - betas.beta1) * x.g;
    x.v = betas.beta2 * x.v + (1 - betas.beta2) * x.g * x.g;
    const std::int64_t t = update.step.number;
    const double correction1 = s.bias_correction ? correction(betas.beta1, t) : 1;
    const double correction2 = s.bias_correction ? correction(betas.beta2, t) : 1;
    expected.push_back(x.p - rate / correction1 * x.m /
                                 (std::sqrt(x.v) / std::sqrt(correction2) + s.epsilon));
  }
  apply(update, values);
  CHECK(test::difference(values.p, expected, test::tolerance::elementwise) == "");
}

TEST_CASE("AdamW: equals one element computed with fused multiply-adds", "[ops][update]") {
  Values values(100);
  const Values before = values;
  const rules::Adam::Settings settings{.weight_decay = 0.01};
  Update update{.settings = settings, .gradients = test::random_values(100, 4)};
  const rules::Adam::Scalars s = rules::Adam::scalars(settings, update.step);
  apply(update, values);
  for (std::size_t i = 0; i < 100; ++i) {
    const float g = update.gradients[i];
    const float m = std::fma(s.one_minus_beta1, g - before.states[0][i], before.states[0][i]);
    const float v = std::fma(s.beta2, before.states[1][i], s.one_minus_beta2 * g * g);
    const float denominator = std::sqrt(v) + s.eps;
    CHECK(values.p[i] == std::fma(-s.step_size, m / denominator, before.p[i] * s.decay_factor));
  }
}

TEST_CASE("LAMB: agrees with the formula in double", "[ops][update]") {
  const std::int64_t numel = GENERATE(1, 63, 1000, 70'001);
  rules::Lamb::Settings s{.weight_decay = 0.1};
  s.bias_correction = GENERATE(true, false);
  s.eps_inside_sqrt = GENERATE(true, false);
  s.min_coeff = GENERATE(0.01, 5.0);  // the second is a bound that is met
  Update update{.settings = s,
                .step = {.number = GENERATE(1, 1000), .learning_rate = 3e-3},
                .gradients = test::random_values(numel, 4),
                .decision = {.gradient_scale = 0.25}};
  Values values(numel);
  std::vector<double> expected;
  double values_squared = 0;
  double change_squared = 0;
  for (std::size_t i = 0; i < values.p.size(); ++i) {
    const InDouble x(values, update, i);
    const double m = s.betas.beta1 * x.m + (1 - s.betas.beta1) * x.g;
    const double v = s.betas.beta2 * x.v + (1 - s.betas.beta2) * x.g * x.g;
    const double root = s.eps_inside_sqrt ? std::sqrt(v + s.epsilon) : std::sqrt(v) + s.epsilon;
    expected.push_back(m / root + s.weight_decay * x.p);
    values_squared += x.p * x.p;
    change_squared += expected.back() * expected.back();
  }
  const double ratio =
      std::clamp(std::sqrt(values_squared / change_squared), s.min_coeff, s.max_coeff);
  double rate = update.step.learning_rate;
  if (s.bias_correction) {
    rate *= std::sqrt(correction(s.betas.beta2, update.step.number)) /
            correction(s.betas.beta1, update.step.number);
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = static_cast<double>(values.p[i]) - rate * ratio * expected[i];
  }
  apply(update, values);
  CHECK(test::difference(values.p, expected, test::tolerance::elementwise) == "");
}

TEST_CASE("LAMB: a parameter of zeros is updated as by Adam", "[ops][update]") {
  Values values(100);
  std::ranges::fill(values.p, 0.0F);
  for (std::vector<float>& state : values.states) std::ranges::fill(state, 0.0F);
  Update update{.settings = rules::Lamb::Settings{.epsilon = 1e-12},
                .step = {.learning_rate = 0.5},
                .gradients = test::random_values(100, 4)};
  apply(update, values);
  for (std::size_t i = 0; i < values.p.size(); ++i) {
    CHECK(values.p[i] == Catch::Approx(std::copysign(0.5F, -update.gradients[i])).epsilon(1e-4));
  }
}

TEST_CASE("Lion: agrees with the formula in double", "[ops][update]") {
  const rules::Lion::Settings s{.betas = {0.9, 0.95}, .weight_decay = 0.1};
  Update update{.settings = s,
                .step = {.number = GENERATE(1, 1000), .learning_rate = 3e-3},
                .gradients = test::random_values(1000, 4),
                .decision = {.gradient_scale = GENERATE(1.0, 0.25)}};
  Values values(1000);
  std::vector<double> parameters;
  std::vector<double> momenta;
  for (std::size_t i = 0; i < values.p.size(); ++i) {
    const InDouble x(values, update, i);
    const double direction = s.betas.beta1 * x.m + (1 - s.betas.beta1) * x.g;
    const double rate = update.step.learning_rate;
    parameters.push_back(x.p * (1 - rate * s.weight_decay) - std::copysign(rate, direction));
    momenta.push_back(s.betas.beta2 * x.m + (1 - s.betas.beta2) * x.g);
  }
  apply(update, values);
  CHECK(test::difference(values.p, parameters, test::tolerance::elementwise) == "");
  CHECK(test::difference(values.states[0], momenta, test::tolerance::elementwise) == "");
}

TEST_CASE("Lion: an element without gradient and momentum is only decayed", "[ops][update]") {
  Values values(3);
  values.p = {2, 0, -2};
  values.states[0] = {0, 0, 0};
  Update update{.settings = rules::Lion::Settings{.weight_decay = 0.5},
                .step = {.learning_rate = 0.5},
                .gradients = {0, 0, 0}};
  apply(update, values);
  CHECK(values.p == std::vector<float>{1.5F, 0, -1.5F});
}

// What holds for every rule.

TEST_CASE("Update: a skipped step changes no state", "[ops][update]") {
  Values values(1000);
  const Values before = values;
  Update update{.settings = GENERATE(from_range(all_rules())),
                .gradients = std::vector<float>(1000, std::numeric_limits<float>::quiet_NaN()),
                .working = std::vector<BFloat16>(1000, BFloat16{0x1234}),
                .decision = {.taken = 0}};
  apply(update, values);
  CHECK((values == before));
  for (std::size_t i = 0; i < update.working.size(); ++i) {
    CHECK((update.working[i] == to_bfloat16(before.p[i])));
  }
}

TEST_CASE("Update: the bits do not depend on how a parameter is cut", "[ops][update]") {
  constexpr std::int64_t numel = 70'001;
  Update whole{.settings = GENERATE(from_range(all_rules())),
               .gradients = test::random_values(numel, 4)};
  Values expected(numel);
  apply(whole, expected);
  // Layerwise rules are cut at multiples of 64.
  std::vector<std::size_t> pieces{64, 4096, 16'448};
  if (!rules::is_layerwise(whole.settings)) pieces.insert(pieces.end(), {1, 7, 16'385});
  for (const std::size_t piece : pieces) {
    CAPTURE(piece);
    Update cut = whole;
    cut.piece = piece;
    Values values(numel);
    apply(cut, values);
    CHECK((values == expected));
  }
}

TEST_CASE("Update: the working copy is the rounded parameters and changes no bit",
          "[ops][update]") {
  const std::int64_t numel = GENERATE(0, 1, 15, 17, 50'001);
  Update plain{.settings = GENERATE(from_range(all_rules())),
               .gradients = test::random_values(numel, 4)};
  Values expected(numel);
  apply(plain, expected);
  Update copied = plain;
  copied.working.resize(static_cast<std::size_t>(numel), BFloat16{0x1234});
  Values values(numel);
  apply(copied, values);
  CHECK((values == expected));
  for (std::size_t i = 0; i < copied.working.size(); ++i) {
    CHECK((copied.working[i] == to_bfloat16(values.p[i])));
  }
}

TEST_CASE("Update: NaN parameters stay NaN in the working copy", "[ops][update]") {
  Values values(64);
  Update update{.settings = GENERATE(from_range(elementwise_rules())),
                .gradients = std::vector<float>(64),
                .working = std::vector<BFloat16>(64)};
  update.gradients[3] = std::numeric_limits<float>::quiet_NaN();
  apply(update, values);
  for (std::size_t i = 0; i < 64; ++i) {
    CHECK(std::isnan(values.p[i]) == (i == 3));
    CHECK(std::isnan(to_float(update.working[i])) == (i == 3));
  }
}

TEST_CASE("Update: padding stays zero", "[ops][update]") {
  Values values(100);
  Update update{.settings = GENERATE(from_range(all_rules())),
                .gradients = std::vector<float>(100)};
  std::ranges::fill(values.p, 0.0F);
  for (std::vector<float>& state : values.states) std::ranges::fill(state, 0.0F);
  const Values zeros = values;
  apply(update, values);
  CHECK((values == zeros));
}

TEST_CASE("Update: ranges of unequal length are refused", "[ops][update]") {
  Values values(4);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  rules::ScalarValues scalars{};
  const HostView p(values.p, {4});
  ops::UpdateArgs args{.parameters = p,
                       .gradients = p.part(0, {3}),
                       .states = {HostView(values.states[0], {4}), HostView(values.states[1], {4})},
                       .scalars = ops::view_of(scalars)};
  CHECK_THROWS_AS(ops::update(args, stream), Error);
  args.gradients = p;
  CHECK_NOTHROW(ops::update(args, stream));
  CHECK_THROWS_AS(ops::measure_update(args, stream), Error);  // AdamW is elementwise
  std::vector<BFloat16> working(3);
  args.working = HostView(working, {3});
  CHECK_THROWS_AS(ops::update(args, stream), Error);
}

}  // namespace
}  // namespace dstrain
