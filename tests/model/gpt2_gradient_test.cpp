
#include "tests/model/gpt2_reference.h"
#include "tests/model/gpt2_toy.h"
#include "tests/support/catch.h"
#include "tests/support/central_difference.h"
#include "tests/support/tensor_compare.h"

namespace dstrain {
namespace {

reference::Parameters in_double(const test::UnitChain& chain) {
  reference::Parameters parameters;
  for (const auto& [name, values] : chain.parameters) parameters[name] = test::to_double(values);
  return parameters;
}

TEST_CASE("GPT-2: the loss agrees with the reference in double", "[model][gpt2]") {
  const model::BatchShape shape = GENERATE(model::BatchShape{1, 1}, model::BatchShape{3, 7});
  const model::Gpt2Config config = test::toy_config();
  const model::Model model = model::make_gpt2(config, {.in_splits = GENERATE(1, 3)});
  test::ToyChain chain(model, shape);
  chain.forward();
  const double loss = chain.loss();
  const double expected = reference::gpt2_loss(config, in_double(chain), chain.tokens, chain.labels,
                                               static_cast<std::size_t>(shape.tokens));
  CHECK(loss == Catch::Approx(expected).epsilon(2e-6));
  CHECK(chain.backward(1) == Catch::Approx(loss).epsilon(1e-9));
}

TEST_CASE("GPT-2: all parameter gradients agree with central differences", "[model][gpt2]") {
  const model::Gpt2Config config = test::toy_config();
  const model::Model model = model::make_gpt2(config, {.in_splits = GENERATE(1, 3)});
  test::ToyChain chain(model, {2, 7});
  const float weight = 0.1F;
  chain.forward();
  chain.backward(weight);
  reference::Parameters parameters = in_double(chain);
  for (auto& [name, values] : parameters) {
    CAPTURE(name);
    const std::size_t stride = values.size() / 25 + 1;
    const auto expected = test::central_differences(
        values,
        [&, &all = parameters] {
          return static_cast<double>(weight) *
                 reference::gpt2_loss(config, all, chain.tokens, chain.labels, 7);
        },
        stride);
    CHECK(test::difference(test::every(chain.gradients[name], stride), expected,
                           test::tolerance::model) == "");
  }
}

}  // namespace
}  // namespace dstrain
