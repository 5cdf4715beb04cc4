
#include "tests/model/gpt2_reference.h"
#include "tests/model/gpt2_toy.h"
#include "tests/support/catch.h"
#include "tests/support/tensor_compare.h"

namespace dstrain {
namespace {

using Tensors = std::map<std::string, std::vector<float>>;

std::vector<double> twice(const std::vector<float>& values) {
  std::vector<double> doubled = test::to_double(values);
  for (double& value : doubled) value *= 2;
  return doubled;
}

TEST_CASE("GPT-2: accumulating a backward onto itself doubles every gradient", "[model][gpt2]") {
  const float rate = GENERATE(0.0F, 0.2F);
  const std::size_t unit = GENERATE(0UL, 1UL, 3UL);
  CAPTURE(rate, unit);
  const model::Model model = model::make_gpt2(test::toy_config(rate));
  test::ToyChain chain(model, {2, 9});
  chain.dropout = {.seed = 5, .training = true};
  chain.counter = {3, 0};
  chain.forward();
  chain.backward(0.1F);
  chain.backward_unit(unit, false);
  const Tensors gradients = chain.gradients;
  const Tensors activation_gradients = chain.activation_gradients;
  chain.backward_unit(unit, true);
  const model::UnitSpec& spec = model.units[unit]->spec();
  std::vector<std::string> names = spec.borrowed;
  for (const auto& parameter : spec.parameters) names.push_back(parameter.name);
  for (const std::string& name : names) {
    CAPTURE(name);
    CHECK(test::difference(chain.gradients[name], twice(gradients.at(name)),
                           test::tolerance::reduction) == "");
  }
  for (const std::string& name : spec.reads) {
    CHECK(test::difference(chain.activation_gradients[name], twice(activation_gradients.at(name)),
                           test::tolerance::reduction) == "");
  }
}

TEST_CASE("GPT-2: the head agrees with the reference over several chunks", "[model][gpt2]") {
  model::Gpt2Config config = test::toy_config();
  config.n_layer = 0;
  config.vocab_size = 9000;  // two pieces
  config.n_positions = 600;
  const model::Model model = model::make_gpt2(config);
  test::ToyChain chain(model, {2, 600});  // two chunks of rows
  CHECK(model.units[1]->memory({2, 600}).backward_workspace < 601 * (9000 + 24 + 4) * 4 + 5000000);
  chain.forward();
  reference::Parameters parameters;
  for (const auto& [name, values] : chain.parameters) parameters[name] = test::to_double(values);
  const double expected = reference::gpt2_head(
      parameters, test::to_double(chain.activations["hidden0"]), chain.labels, 1e-5);
  CHECK(chain.loss() == Catch::Approx(expected).epsilon(1e-6));
  CHECK(chain.backward(0.1F) == Catch::Approx(expected).epsilon(1e-6));
}

TEST_CASE("GPT-2: gradients over many chunks equal the sums of two halves", "[model][gpt2]") {
  model::Gpt2Config config = test::toy_config();
  config.n_layer = 0;
  config.vocab_size = 20000;
  config.n_positions = 300;
  const model::Model model = model::make_gpt2(config);
  test::ToyChain whole(model, {2, 150});
  whole.forward();
  whole.backward(0.1F);
  Tensors sums;
  std::vector<float> hidden_gradient;
  for (std::ptrdiff_t half = 0; half < 2; ++half) {
    test::ToyChain part(model, {1, 150});
    const auto begin = half * 150;
    part.tokens.assign(whole.tokens.begin() + begin, whole.tokens.begin() + begin + 150);
    part.labels.assign(whole.labels.begin() + begin, whole.labels.begin() + begin + 150);
    part.forward();
    part.backward(0.1F);
    for (const auto& [name, values] : part.gradients) {
      auto& sum = sums[name];
      sum.resize(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
    }
    const auto& hidden = part.activation_gradients["hidden0"];
    hidden_gradient.insert(hidden_gradient.end(), hidden.begin(), hidden.end());
  }
  for (const auto& [name, values] : sums) {
    CAPTURE(name);
    CHECK(test::difference(values, whole.gradients[name], test::tolerance::model) == "");
  }
  CHECK(test::difference(hidden_gradient, whole.activation_gradients["hidden0"],
                         test::tolerance::model) == "");
}

TEST_CASE("GPT-2: the head gives the logits of the last position", "[model][gpt2]") {
  const model::Gpt2Config config = test::toy_config();
  const model::Model model = model::make_gpt2(config);
  test::ToyChain chain(model, {3, 7});
  chain.forward();
  const auto hidden = test::to_double(chain.activations["hidden2"]);
  const auto normed =
      reference::layer_norm(hidden, test::to_double(chain.parameters["ln_f.weight"]),
                            test::to_double(chain.parameters["ln_f.bias"]), 1e-5);
  const std::vector<float>& table = chain.parameters["wte.weight"];
  std::vector<double> expected;
  for (std::size_t sequence = 0; sequence < 3; ++sequence) {
    for (std::size_t token = 0; token < 19; ++token) {
      double logit = 0;
      for (std::size_t i = 0; i < 12; ++i) {
        logit += normed[(sequence * 7 + 6) * 12 + i] * static_cast<double>(table[token * 12 + i]);
      }
      expected.push_back(logit);
    }
  }
  CHECK(test::difference(chain.last_logits(), expected, test::tolerance::model) == "");
}

}  // namespace
}  // namespace dstrain
