// A regression on vectors of floats: two linear layers and a ReLU, as in many a first program with
// DeepSpeed. Goes on from the newest checkpoint in OUTPUT_DIR.
//
//   dstrain --num_gpus 2 ./regression ds_config.json out 10
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include <dstrain/dstrain.h>

namespace {

constexpr std::int64_t samples = 100;
constexpr std::int64_t features = 10;

dstrain::Model simple_model() {
  return dstrain::ModelBuilder("simple", {.positions = 1, .features = features, .targets = 1})
      .unit("net",
            [](dstrain::UnitBuilder& unit) {
              const dstrain::Value x = unit.features();
              const dstrain::Value h =
                  unit.linear(x, "linear1", {.outputs = 20, .initial = {.stddev = 0.3}});
              const dstrain::Value y =
                  unit.linear(unit.activation(h, dstrain::Activation::relu), "linear2",
                              {.outputs = 1, .initial = {.stddev = 0.2}});
              unit.mean_squared_error(y);
            })
      .build();
}

/// Points of a smooth function of ten numbers.
class Points {
 public:
  /// This rank's share of the next step: samples in turn, in micro-batches that go round the ranks.
  dstrain::Batch next(const dstrain::Rank& rank, const dstrain::Engine& engine) {
    x_.clear();
    y_.clear();
    const std::int64_t micro = engine.micro_batch();
    const std::int64_t world = rank.world_size();
    const std::int64_t each = engine.accumulation_steps() * micro;
    for (std::int64_t i = 0; i < each; ++i) {
      const std::int64_t in_step = (i / micro * world + rank.rank()) * micro + i % micro;
      add((engine.steps() * each * world + in_step) % samples);
    }
    return {.sequences = each, .length = 1, .features = x_, .targets = y_};
  }

 private:
  void add(std::int64_t sample) {
    double sum = 0;
    for (std::int64_t i = 0; i < features; ++i) {
      const double x = std::sin(0.7 * static_cast<double>(sample * features + i));
      x_.push_back(static_cast<float>(x));
      sum += x / static_cast<double>(i + 1);
    }
    y_.push_back(static_cast<float>(std::tanh(sum)));
  }

  std::vector<float> x_;
  std::vector<float> y_;
};

void train(const std::string& config, const std::string& output, std::int64_t epochs) {
  dstrain::Rank rank;
  auto engine = dstrain::initialize(rank, dstrain::Config::from_file(config), simple_model());
  engine.load_checkpoint(output);
  const std::int64_t global_batch =
      engine.micro_batch() * engine.accumulation_steps() * rank.world_size();
  const std::int64_t steps = samples / global_batch;
  Points points;
  while (engine.steps() < epochs * steps) {
    const std::int64_t epoch = engine.steps() / steps;
    const dstrain::StepResult result = engine.train_batch(points.next(rank, engine));
    if (rank.rank() != 0 || engine.steps() % steps != 0) continue;
    std::printf("epoch %lld step %lld loss %.9g\n", static_cast<long long>(epoch + 1),
                static_cast<long long>(result.step), result.loss);
  }
  engine.save_checkpoint(output);
  engine.save_pretrained(output + "/model");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: regression DS_CONFIG OUTPUT_DIR EPOCHS\n");
    return 2;
  }
  try {
    train(argv[1], argv[2], std::atoll(argv[3]));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
