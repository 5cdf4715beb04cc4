// A model of one's own with a layer of one's own: a small decoder whose MLPs square their ReLU and
// scale it by a learned factor.
//
//   dstrain --num_gpus 2 ./own_model ds_config.json book.txt out 100
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "byte_samples.h"

namespace {

constexpr std::int64_t length = 32;
constexpr std::int64_t width = 48;

/// factor max(x, 0)^2, with a factor for each feature.
class SquaredRelu final : public dstrain::CustomLayer {
 public:
  void forward(const Values& values, std::span<float> output) const override {
    const std::span<const float> x = values.inputs[0];
    const std::span<const float> factor = values.parameters[0];
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float positive = std::max(x[i], 0.0F);
      output[i] = factor[i % factor.size()] * positive * positive;
    }
  }
  void backward(const Values& values, const Gradients& gradients) const override {
    const std::span<const float> x = values.inputs[0];
    const std::span<const float> factor = values.parameters[0];
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float positive = std::max(x[i], 0.0F);
      gradients.inputs[0][i] = gradients.output[i] * factor[i % factor.size()] * 2 * positive;
      gradients.parameters[0][i % factor.size()] += gradients.output[i] * positive * positive;
    }
  }
};

void record_block(dstrain::UnitBuilder& unit, const char* from, const char* to) {
  const dstrain::Value x = unit.read(from);
  const dstrain::Value qkv = unit.linear(unit.rms_norm(x, "norm_1"), "qkv", {.outputs = 3 * width});
  const dstrain::Value a = unit.attention(qkv, {.heads = 4, .rotary_base = 10000});
  const dstrain::Value h = unit.add(x, unit.linear(a, "out", {.outputs = width}), 0.1);
  const dstrain::Value up = unit.linear(unit.rms_norm(h, "norm_2"), "up", {.outputs = 4 * width});
  const dstrain::Value f = unit.custom(
      {up}, "squared_relu", std::make_shared<SquaredRelu>(),
      {.parameters = {
           {.name = "factor", .shape = {4 * width}, .initial = {dstrain::Initial::Kind::ones}}}});
  unit.write(unit.add(h, unit.linear(f, "down", {.outputs = width}), 0.1), to);
}

dstrain::ModelBuilder describe() {
  dstrain::ModelBuilder builder("squared", {.vocabulary = 256, .positions = length});
  builder.unit("embedding", [](dstrain::UnitBuilder& unit) {
    unit.write(unit.embedding("tokens", {.features = width}), "hidden0");
  });
  builder.unit("block0", [](auto& unit) { record_block(unit, "hidden0", "hidden1"); });
  builder.unit("block1", [](auto& unit) { record_block(unit, "hidden1", "hidden2"); });
  builder.unit("head", [](dstrain::UnitBuilder& unit) {
    unit.cross_entropy_tied(unit.rms_norm(unit.read("hidden2"), "norm"), "embedding.tokens.weight");
  });
  return builder;
}

void train(const char* config, const char* text, const std::string& output, std::int64_t steps) {
  dstrain::Rank rank;
  const dstrain::ModelBuilder builder = describe();
  ByteSamples samples(text, length);
  {
    auto engine = dstrain::initialize(rank, dstrain::Config::from_file(config), builder.build(),
                                      {.length = length});
    engine.load_checkpoint(output);
    while (engine.steps() < steps) {
      const dstrain::StepResult result = engine.train_batch(samples.next(rank, engine));
      if (rank.rank() != 0) continue;
      std::printf("step %lld loss %.17g\n", static_cast<long long>(result.step), result.loss);
    }
    engine.save_checkpoint(output);
    engine.save_pretrained(output + "/model");
    const double loss = engine.evaluate(samples.first(rank, engine));
    if (rank.rank() == 0) std::printf("trained %.17g\n", loss);
  }
  auto again =
      dstrain::initialize(rank, dstrain::Config::from_file(config),
                          builder.build(output + "/model"), {.length = length, .trains = false});
  const double loss = again.evaluate(samples.first(rank, again));
  if (rank.rank() == 0) std::printf("read %.17g\n", loss);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: own_model DS_CONFIG TEXT OUTPUT_DIR STEPS\n");
    return 2;
  }
  try {
    train(argv[1], argv[2], argv[3], std::atoll(argv[4]));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
