#include "runtime/optim/adamw.h"

#include <array>
#include <vector>

#include "runtime/device/cpu_stream.h"
#include "runtime/ops/decide_step.h"
#include "tests/support/catch.h"
#include "tests/support/random_values.h"

namespace dstrain {
namespace {

struct Run {
  std::vector<float> parameters = test::random_values(1001, 1);
  std::vector<float> exp_avg = std::vector<float>(1001);
  std::vector<float> exp_avg_sq = std::vector<float>(1001);
};

/// Three steps; the last working copy is left in `working`.
Run train(const config::AdamSettings& settings, std::span<BFloat16> working) {
  const optim::AdamW optimizer(settings);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  Run run;
  for (std::int64_t step = 1; step <= 3; ++step) {
    std::vector<float> gradients = test::random_values(1001, static_cast<std::uint64_t>(step) + 10);
    const Shape shape{1001};
    const std::array<TensorView, 2> states{HostView(run.exp_avg, shape),
                                           HostView(run.exp_avg_sq, shape)};
    optim::RuleScalars scalars = optimizer.scalars({.step = step, .learning_rate = 0.01});
    ops::StepDecision decision{.gradient_scale = 0.5};
    optimizer.step({.parameters = HostView(run.parameters, shape),
                    .gradients = HostView(gradients, shape),
                    .states = states,
                    .working = working.empty() ? HostView() : HostView(working, shape)},
                   {HostView(scalars, {std::ssize(scalars)}), ops::view_of(decision)}, stream);
  }
  return run;
}

TEST_CASE("AdamW optimizer: the working copy follows the master parameters", "[optim][adamw]") {
  config::AdamSettings settings;
  settings.weight_decay = 0.1;
  settings.decoupled_decay = GENERATE(true, false);
  std::vector<BFloat16> working(1001);
  const Run plain = train(settings, {});
  const Run copied = train(settings, working);
  CHECK(plain.parameters == copied.parameters);
  CHECK(plain.exp_avg == copied.exp_avg);
  CHECK(plain.exp_avg_sq == copied.exp_avg_sq);
  for (std::size_t i = 0; i < working.size(); ++i) {
    CHECK((working[i] == to_bfloat16(plain.parameters[i])));
  }
}

}  // namespace
}  // namespace dstrain
