// A rank that trains the models of tests/golden/make_regression.py; the tests read what it prints.
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>

#include "tests/library/rank_modes.h"

namespace {

constexpr std::int64_t golden_sequences = 12;
constexpr std::int64_t golden_length = 4;
constexpr std::int64_t golden_features = 6;
constexpr std::int64_t golden_targets = 3;

dstrain::ModelBuilder regression() {
  dstrain::ModelBuilder builder(
      "regression",
      {.positions = golden_length, .features = golden_features, .targets = golden_targets});
  builder.unit("net", [](dstrain::UnitBuilder& unit) {
    const dstrain::Value h = unit.linear(unit.features(), "linear1", {.outputs = 16});
    unit.mean_squared_error(unit.linear(unit.activation(h, dstrain::Activation::relu), "linear2",
                                        {.outputs = golden_targets}));
  });
  return builder;
}

dstrain::ModelBuilder tokens_and_features() {
  dstrain::ModelBuilder builder("both", {.vocabulary = 11,
                                         .positions = golden_length,
                                         .features = golden_features,
                                         .targets = golden_targets});
  builder.unit("embedding", [](dstrain::UnitBuilder& unit) {
    const dstrain::Value tokens = unit.embedding("tokens", {.features = 16});
    const dstrain::Value linear = unit.linear(unit.features(), "linear", {.outputs = 16});
    unit.write(unit.activation(unit.add(tokens, linear), dstrain::Activation::silu), "hidden");
  });
  builder.unit("head", [](dstrain::UnitBuilder& unit) {
    const dstrain::Value hidden = unit.read("hidden");
    const dstrain::Value predictions = unit.linear(hidden, "predict", {.outputs = golden_targets});
    unit.cross_entropy(hidden, "classes", {.count = 5, .factor = 0.5});
    unit.mean_squared_error(predictions, 2);
  });
  return builder;
}

/// log(cosh(first input - second input)).
class LogCosh final : public dstrain::CustomLayer {
 public:
  void forward(const Values& values, std::span<float> output) const override {
    for (std::size_t i = 0; i < output.size(); ++i) {
      output[i] = std::log(std::cosh(values.inputs[0][i] - values.inputs[1][i]));
    }
  }
  void backward(const Values& values, const Gradients& gradients) const override {
    for (std::size_t i = 0; i < gradients.output.size(); ++i) {
      const float slope = std::tanh(values.inputs[0][i] - values.inputs[1][i]);
      gradients.inputs[0][i] = gradients.output[i] * slope;
      gradients.inputs[1][i] = -gradients.output[i] * slope;
    }
  }
};

dstrain::ModelBuilder own_loss() {
  dstrain::ModelBuilder builder(
      "own", {.vocabulary = 11, .positions = golden_length, .features = golden_features});
  builder.unit("embedding", [](dstrain::UnitBuilder& unit) {
    const dstrain::Value tokens = unit.embedding("tokens", {.features = golden_features});
    unit.write(unit.custom({tokens, unit.features()}, "log_cosh", std::make_shared<LogCosh>()),
               "losses");
  });
  builder.unit("loss", [](auto& unit) { unit.mean_value(unit.read("losses")); });
  return builder;
}

float sine(double first, double step, std::int64_t i) {
  return static_cast<float>(std::sin(first + step * static_cast<double>(i)));
}

/// What batches have beside features.
struct Reads {
  bool tokens = true;  ///< and labels, of which some do not count
  bool targets = true;
};

/// A rank's share of a step's sines.
struct Sines {
  Sines(const dstrain::Rank& rank, const dstrain::Engine& engine, Reads of) : reads(of) {
    const std::int64_t micro = engine.micro_batch();
    count = engine.accumulation_steps() * micro;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t in_step =
          (i / micro * rank.world_size() + rank.rank()) * micro + i % micro;
      const std::int64_t sequence = engine.steps() * golden_sequences + in_step;
      for (std::int64_t t = 0; t < golden_length; ++t) add(sequence * golden_length + t);
    }
  }
  void add(std::int64_t position) {
    tokens.push_back(static_cast<std::int32_t>(position * 7 % 11));
    labels.push_back(position % 7 == 3 ? dstrain::ignored_label
                                       : static_cast<std::int32_t>(position % 5));
    for (std::int64_t k = 0; k < golden_features; ++k) {
      features.push_back(sine(0, 0.37, position * golden_features + k));
    }
    for (std::int64_t k = 0; k < golden_targets; ++k) {
      targets.push_back(sine(0, 0.23, position * golden_targets + k));
    }
  }
  /// Sequences [first, first + n).
  [[nodiscard]] dstrain::Batch part(std::int64_t first, std::int64_t n) const {
    const auto cut = [first, n](const auto& values, std::int64_t each) {
      const auto begin = static_cast<std::size_t>(first * golden_length * each);
      return std::span(values).subspan(begin, static_cast<std::size_t>(n * golden_length * each));
    };
    dstrain::Batch batch{
        .sequences = n, .length = golden_length, .features = cut(features, golden_features)};
    if (reads.tokens) batch.tokens = cut(tokens, 1);
    if (reads.tokens) batch.labels = cut(labels, 1);
    if (reads.targets) batch.targets = cut(targets, golden_targets);
    return batch;
  }

  Reads reads;
  std::int64_t count = 0;
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> labels;
  std::vector<float> features;
  std::vector<float> targets;
};

void learn_sines(dstrain::Rank& rank,
                 const Arguments& arguments,
                 const dstrain::ModelBuilder& builder,
                 Reads reads) {
  auto engine =
      dstrain::initialize(rank, dstrain::Config::from_file(arguments.config), builder.build());
  const std::vector<dstrain::ParameterInfo> parameters = engine.parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    auto gathered = engine.gathered_parameters({parameters[p].name});
    std::int64_t i = 0;
    for (float& value : gathered[parameters[p].name]) {
      value = static_cast<float>(
          0.3 * static_cast<double>(sine(1 + 3 * static_cast<double>(p), 0.7, i++)));
    }
  }
  while (engine.steps() < 8) {
    const Sines sines(rank, engine, reads);
    const std::int64_t micro = engine.micro_batch();
    if (engine.steps() % 2 == 0) {
      print(rank, engine.train_batch(sines.part(0, sines.count)));
      continue;
    }
    for (std::int64_t i = 0; i < sines.count; i += micro) {
      engine.forward_backward(sines.part(i, micro));
    }
    print(rank, engine.step());
  }
  // Predictions, or the logits of the first loss, agree on every rank's own sequences.
  const Sines sines(rank, engine, reads);
  const dstrain::Batch batch = sines.part(0, sines.count);
  const double loss = engine.evaluate(batch);
  const std::vector<float> outputs = engine.logits(batch);
  if (rank.rank() != 0) return;
  double error = 0;
  if (!reads.tokens) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const double difference = static_cast<double>(outputs[i] - batch.targets[i]);
      error += difference * difference / static_cast<double>(outputs.size());
    }
  }
  std::printf("evaluated %.9g, %zu outputs say %.9g\n", loss, outputs.size(), error);
}

/// Features and targets that are no numbers; the label of position 2 does not count.
void spoil(dstrain::Rank& rank, const Arguments& arguments) {
  auto engine =
      dstrain::initialize(rank, dstrain::Config::from_file(arguments.config), regression().build());
  const auto tries = [&](const char* name, std::int64_t feature_at, std::int64_t target_at) {
    Sines sines(rank, engine, {});
    std::vector<std::int32_t> labels(sines.labels.size(), 0);
    labels[2] = dstrain::ignored_label;
    sines.labels = labels;
    if (feature_at >= 0) sines.features[static_cast<std::size_t>(feature_at)] = NAN;
    if (target_at >= 0) sines.targets[static_cast<std::size_t>(target_at)] = INFINITY;
    dstrain::Batch batch = sines.part(0, sines.count);
    batch.tokens = {};
    std::string said = "taken";
    try {
      const dstrain::StepResult result = engine.train_batch(batch);
      if (!std::isfinite(result.gradient_norm)) said = "spoiled";
    } catch (const dstrain::Error& error) {
      said = error.what();
    }
    if (rank.rank() == 0) std::printf("%s: %s\n", name, said.c_str());
  };
  tries("feature", 2 * golden_features + 1, -1);
  tries("target", -1, golden_targets);
  tries("ignored target", -1, 2 * golden_targets);
}

}  // namespace

int main(int argc, char** argv) {
  return run_mode(argc, argv,
                  {{"regression",
                    [](auto& rank, auto& a) {
                      learn_sines(rank, a, regression(), {.tokens = false});
                    }},
                   {"both",
                    [](auto& rank, auto& a) {
                      learn_sines(rank, a, tokens_and_features(), {});
                    }},
                   {"spoiled", spoil},
                   {"own", [](auto& rank, auto& a) {
                      learn_sines(rank, a, own_loss(), {.targets = false});
                    }}});
}
