#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/model/families.h"
#include "runtime/model/loss_unit.h"
#include "runtime/ops/attention.h"
#include "tests/model/gpt2_toy.h"
#include "tests/support/catch.h"
#include "tests/support/tensor_compare.h"

namespace dstrain {
namespace {

/// NaN is unequal to itself, so bits are compared.
bool equal_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_CASE("GPT-2: forward again gives the same bits", "[model][gpt2]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const float rate = GENERATE(0.0F, 0.2F);
  const model::Model model = model::make_gpt2(test::toy_config(rate), {dtype});
  test::ToyChain chain(model, {2, 9});
  chain.dropout = {.seed = 5, .training = true};
  chain.counter = {3, 0};
  chain.forward();
  const auto saved = chain.saved;
  const auto activations = chain.activations;
  chain.forward();
  for (std::size_t unit = 0; unit < saved.size(); ++unit) {
    CHECK(equal_bits(chain.saved[unit], saved[unit]));
  }
  CHECK(chain.activations == activations);
}

TEST_CASE("GPT-2: gradients repeat their bits and leave forward results alone", "[model][gpt2]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const float rate = GENERATE(0.0F, 0.2F);
  const model::Model model = model::make_gpt2(test::toy_config(rate), {dtype});
  test::ToyChain chain(model, {2, 9});
  chain.dropout = {.seed = 5, .training = true};
  chain.counter = {3, 0};
  chain.forward();
  const auto saved = chain.saved;
  const auto activations = chain.activations;
  chain.backward(0.1F);
  const auto gradients = chain.gradients;
  chain.backward(0.1F);
  CHECK(chain.gradients == gradients);
  CHECK(chain.activations == activations);
  for (std::size_t unit = 0; unit < saved.size(); ++unit) {
    CHECK(equal_bits(chain.saved[unit], saved[unit]));
  }
}

TEST_CASE("GPT-2: dropout does nothing outside training", "[model][gpt2]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const model::Model dropping = model::make_gpt2(test::toy_config(0.2F), {dtype});
  const model::Model plain = model::make_gpt2(test::toy_config(), {dtype});
  test::ToyChain first(dropping, {2, 9});
  test::ToyChain second(plain, {2, 9});
  first.forward();
  second.forward();
  CHECK(first.activations == second.activations);
  first.dropout.training = true;
  first.forward();
  CHECK(first.activations != second.activations);
}

/// |a - b| / |b|, both as vectors.
double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0;
  double length = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    length += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / length);
}

TEST_CASE("GPT-2: bf16 follows fp32", "[model][gpt2]") {
  const float rate = GENERATE(0.0F, 0.2F);
  const model::Model exact = model::make_gpt2(test::toy_config(rate));
  const model::Model half = model::make_gpt2(test::toy_config(rate), {DType::bf16});
  test::ToyChain expected(exact, {2, 9});
  test::ToyChain found(half, {2, 9});
  for (auto& [name, values] : expected.parameters) {
    for (float& value : values) value = to_float(to_bfloat16(value));
    found.parameters[name] = values;
  }
  expected.dropout = found.dropout = {.seed = 5, .training = true};
  expected.counter = found.counter = {3, 0};
  expected.forward();
  found.forward();
  const double loss = expected.backward(0.1F);
  CHECK(found.backward(0.1F) == Catch::Approx(loss).epsilon(0.002));
  for (const auto& [name, values] : expected.gradients) {
    CAPTURE(name);
    CHECK(relative_distance(found.gradients[name], values) < 0.04);  // measured: 0.017
  }
}

TEST_CASE("GPT-2: splitting a batch does not change the loss sum", "[model][gpt2]") {
  const float rate = GENERATE(0.0F, 0.2F);
  const model::Model model = model::make_gpt2(test::toy_config(rate));
  test::ToyChain whole(model, {4, 9});
  whole.dropout = {.seed = 5, .training = true};
  whole.counter = {3, 8};
  whole.forward();
  const double expected = whole.backward(0.1F);
  auto gradients = whole.gradients;
  double sum = 0;
  for (auto& [name, values] : gradients) values.assign(values.size(), 0.0F);
  for (std::ptrdiff_t sample = 0; sample < 4; ++sample) {
    test::ToyChain part(model, {1, 9});
    part.tokens.assign(whole.tokens.begin() + sample * 9, whole.tokens.begin() + sample * 9 + 9);
    part.labels.assign(whole.labels.begin() + sample * 9, whole.labels.begin() + sample * 9 + 9);
    part.dropout = whole.dropout;
    part.counter = {3, 8 + sample};
    part.forward();
    sum += part.backward(0.1F);
    for (auto& [name, values] : gradients) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += part.gradients[name][i];
    }
  }
  CHECK(sum == Catch::Approx(expected).epsilon(1e-6));
  for (const auto& [name, values] : gradients) {
    CAPTURE(name);
    CHECK(test::difference(values, whole.gradients[name], test::tolerance::model) == "");
  }
}

TEST_CASE("GPT-2: names and shapes are those of Hugging Face", "[model][gpt2]") {
  const model::Model model = model::make_gpt2(test::toy_config());
  REQUIRE(model.units.size() == 4);
  CHECK(model.units[0]->spec().parameters[1].name == "wpe.weight");
  const model::UnitSpec& block = model.units[2]->spec();
  CHECK(block.name == "h.1");
  REQUIRE(block.parameters.size() == 12);
  CHECK(block.parameters[2].name == "h.1.attn.c_attn.weight");
  CHECK(block.parameters[2].shape == Shape{12, 36});
  CHECK(block.parameters[10].name == "h.1.mlp.c_proj.weight");
  CHECK(block.parameters[10].shape == Shape{20, 12});
  CHECK(block.parameters[10].init.stddev == Catch::Approx(0.01));  // 0.02 / sqrt(2 L)
  CHECK(block.reads == std::vector<std::string>{"hidden1"});
  CHECK(model.units[3]->spec().borrowed == std::vector<std::string>{"wte.weight"});
  CHECK(model.units[3]->spec().loss.has_value());
  CHECK(model::model_preset("gpt2")->make().parameter_count() == 124439808);
  CHECK(
      model.flops({3, 7}) ==
      Catch::Approx(21 * (6.0 * static_cast<double>(model.parameter_count()) + 6.0 * 2 * 12 * 7)));
}

TEST_CASE("GPT-2: memory per token is the documented formula", "[model][gpt2]") {
  const model::Gpt2Config config = model::Gpt2Config();
  const model::Model model = model::make_gpt2(config);
  const model::BatchShape shape{2, 64};
  const std::int64_t c = 768;
  const std::int64_t f = 3072;
  const std::int64_t h = 12;
  const model::UnitMemory memory = model.units[1]->memory(shape);
  CHECK(memory.saved == shape.rows() * (5 * c + f + h + 4) * 4);
  const Bytes panels = c * f * 4;
  const Bytes a = ops::attention_backward_workspace({2, 64, 64, h, h, c / h}, {}, DeviceKind::cpu);
  const Bytes attention =
      ops::attention_forward_workspace({2, 64, 64, h, h, c / h}, {}, DeviceKind::cpu);
  CHECK(memory.forward_workspace == std::max(shape.rows() * (c + f) * 4 + panels, attention));
  CHECK(memory.backward_workspace ==
        std::max(shape.rows() * (c + f) * 4 + panels, shape.rows() * (2 * c + 3 * c) * 4 + a));
  const model::Model half = model::make_gpt2(config, {DType::bf16});
  CHECK(half.units[1]->memory(shape).saved == shape.rows() * ((5 * c + f) * 2 + (h + 4) * 4));
  CHECK(model.units[0]->memory(shape).saved == 0);
  const model::UnitMemory head = model.units.back()->memory(shape);
  CHECK(head.saved == 0);
  CHECK(head.backward_workspace == shape.rows() * (50257 + 3 * c + 5) * 4);
  // Packed for the products: the norm's output; in bf16 a piece of wte.weight; and in bf16 the
  // gradient of a piece of the logits.
  CHECK(half.units.back()->memory(shape).backward_workspace > head.backward_workspace);
  const model::UnitMemory large = model.units.back()->memory({4, 512});
  CHECK(large.backward_workspace == 1024 * (50257 + 3 * c + 5) * 4);
}

TEST_CASE("GPT-2: the head has room for the last of its chunks", "[model][gpt2]") {
  model::Gpt2Config config;
  config.vocab_size = 257;
  config.n_embd = 1024;
  config.n_layer = 0;
  const model::Model model =
      model::make_gpt2(config, {GENERATE(DType::f32, DType::bf16, DType::f16)});
  const auto workspace = [&model](std::int64_t rows) {
    return model.units.back()->memory({1, rows}).backward_workspace;
  };
  for (std::int64_t rows = 1; rows < 4096; ++rows) {
    const std::int64_t last = (rows - 1) % model::loss_chunk_rows(rows) + 1;
    if (workspace(rows) >= workspace(last)) continue;
    FAIL_CHECK(rows << " rows leave " << last << ", which need more");
  }
}

TEST_CASE("GPT-2: memory is that of the device whose ops the units call", "[model][gpt2]") {
  const model::Gpt2Config config = model::Gpt2Config();
  const model::BatchShape shape{2, 64};
  const Bytes activation = shape.rows() * 768 * 4;
  const model::Model here = model::make_gpt2(config);
  const model::Model there = model::make_gpt2(config, {.device = DeviceKind::cuda});
  CHECK(there.device == DeviceKind::cuda);
  const model::UnitMemory block = there.units[1]->memory(shape);
  CHECK(block.saved == here.units[1]->memory(shape).saved);
  CHECK(block.forward_workspace == (1 + 4) * activation + 32 * mebibyte);
  CHECK(block.backward_workspace == 2 * 4 * activation + 32 * mebibyte);
  const model::UnitMemory head = there.units.back()->memory(shape);
  constexpr Bytes padded = 50264;  // 50,257 classes in rows of whole 16 bytes
  CHECK(head.backward_workspace == shape.rows() * (padded + 768 + 3) * 4 + 32 * mebibyte);
}

}  // namespace
}  // namespace dstrain
