// A rank that uses the library in the ways of its first argument; the tests read what it prints.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "examples/library/byte_samples.h"
#include "tests/library/rank_modes.h"

namespace {

constexpr std::int64_t length = 32;
constexpr const char* sizes =
    "n_layer=2,n_embd=48,n_head=4,vocab_size=256,n_positions=32,embd_pdrop=0.1,attn_pdrop=0.1,"
    "resid_pdrop=0.1";

dstrain::Engine make_engine(dstrain::Rank& rank,
                            const Arguments& arguments,
                            dstrain::InitializeOptions options = {.length = length}) {
  return dstrain::initialize(rank, dstrain::Config::from_file(arguments.config),
                             dstrain::Model::from_config("gpt2", sizes), options);
}

/// Sequences [first, first + count) of a batch.
dstrain::Batch part(const dstrain::Batch& batch, std::int64_t first, std::int64_t count) {
  const auto begin = static_cast<std::size_t>(first * batch.length);
  const auto numel = static_cast<std::size_t>(count * batch.length);
  return {.tokens = batch.tokens.subspan(begin, numel),
          .labels = batch.labels.subspan(begin, numel),
          .sequences = count,
          .length = batch.length};
}

/// The same batches as trainer.cpp, one micro-batch at a time.
void train_by_hand(dstrain::Rank& rank, const Arguments& arguments) {
  dstrain::Engine engine = make_engine(rank, arguments);
  ByteSamples samples(arguments.text, length);
  while (engine.steps() < 6) {
    const dstrain::Batch batch = samples.next(rank, engine);
    for (std::int64_t i = 0; i < engine.accumulation_steps(); ++i) {
      engine.forward_backward(part(batch, i * engine.micro_batch(), engine.micro_batch()));
    }
    print(rank, engine.step());
  }
}

/// x sigmoid(x), as the library has it.
class Silu final : public dstrain::CustomLayer {
 public:
  void forward(const Values& values, std::span<float> output) const override {
    for (std::size_t i = 0; i < output.size(); ++i) {
      output[i] = values.inputs[0][i] * sigmoid(values.inputs[0][i]);
    }
  }
  void backward(const Values& values, const Gradients& gradients) const override {
    for (std::size_t i = 0; i < gradients.output.size(); ++i) {
      const float x = values.inputs[0][i];
      const float s = sigmoid(x);
      gradients.inputs[0][i] = gradients.output[i] * s * (1 + x * (1 - s));
    }
  }

 private:
  static float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }
};

/// Labels of which another number counts in each micro-batch: by hand without and with the number
/// that counts, and at once.
void count_labels(dstrain::Rank& rank, const Arguments& arguments) {
  for (const char* way : {"at once", "by hand", "told"}) {
    dstrain::Engine engine = make_engine(rank, arguments);
    ByteSamples samples(arguments.text, length);
    while (engine.steps() < 4) {
      dstrain::Batch batch = samples.next(rank, engine);
      std::vector<std::int32_t> labels(batch.labels.begin(), batch.labels.end());
      std::int64_t counted = 0;
      for (std::size_t i = 0; i < labels.size(); ++i) {
        if (i % (2 + i / 64) != 0) labels[i] = dstrain::ignored_label;
        counted += labels[i] != dstrain::ignored_label ? rank.world_size() : 0;
      }
      batch.labels = labels;
      if (std::string(way) == "at once") {
        print(rank, engine.train_batch(batch));
        continue;
      }
      for (std::int64_t i = 0; i < engine.accumulation_steps(); ++i) {
        engine.forward_backward(part(batch, i * engine.micro_batch(), engine.micro_batch()),
                                std::string(way) == "told" ? counted : 0);
      }
      print(rank, engine.step());
    }
  }
}

/// The mean loss that logits say.
double loss_of(const std::vector<float>& logits,
               const dstrain::Batch& batch,
               std::int64_t vocabulary) {
  double sum = 0;
  std::int64_t count = 0;
  auto row = logits.begin();
  for (const std::int32_t label : batch.labels) {
    double total = 0;
    for (std::int64_t i = 0; i < vocabulary; ++i) total += std::exp(static_cast<double>(row[i]));
    if (label != dstrain::ignored_label) {
      sum += std::log(total) - static_cast<double>(row[label]);
      ++count;
    }
    row += vocabulary;
  }
  return sum / static_cast<double>(count);
}

/// More sequences than a micro-batch has, shorter than the engine's length.
void evaluate(dstrain::Rank& rank, const Arguments& arguments) {
  dstrain::Engine engine = make_engine(rank, arguments, {.length = length, .trains = false});
  ByteSamples samples(arguments.text, 20);
  const dstrain::Batch batch = samples.next(rank, engine);
  const double whole = engine.evaluate(batch);
  const double said = loss_of(engine.logits(batch), batch, engine.outputs());
  std::printf("rank %d evaluates %.9g, its logits say %.9g, of %zu\n", rank.rank(), whole, said,
              engine.logits(part(batch, 0, rank.rank())).size());
}

/// A checkpoint with a tag and a state of the caller; another rank number may read it.
void keep_state(dstrain::Rank& rank, const Arguments& arguments) {
  dstrain::Engine engine = make_engine(rank, arguments);
  ByteSamples samples(arguments.text, length);
  const auto found = engine.load_checkpoint(arguments.output, "second");
  if (rank.rank() == 0 && found) {
    std::printf("found %s after step %lld: %s\n", found->tag.c_str(),
                static_cast<long long>(found->step), found->client_state.c_str());
  }
  if (rank.rank() == 0 && !found) std::printf("found nothing\n");
  for (const char* tag : {"first", "second", ""}) {
    engine.train_batch(samples.next(rank, engine));
    engine.save_checkpoint(
        arguments.output,
        {.tag = tag, .client_state = R"({"position":)" + std::to_string(engine.steps()) + "}"});
  }
  const auto newest = engine.load_checkpoint(arguments.output);
  if (rank.rank() == 0) std::printf("the newest is %s\n", newest->tag.c_str());
}

/// What is refused, and that the engine goes on afterwards.
void be_refused(dstrain::Rank& rank, const Arguments& arguments) {
  dstrain::Engine engine = make_engine(rank, arguments);
  ByteSamples samples(arguments.text, length);
  const dstrain::Batch good = samples.next(rank, engine);
  const auto tries = [&](const char* what, const std::function<void()>& action) {
    try {
      action();
      if (rank.rank() == 0) std::printf("%s: taken\n", what);
    } catch (const dstrain::Error& error) {
      if (rank.rank() == 0) std::printf("%s: %s\n", what, error.what());
    }
  };
  std::vector<std::int32_t> other(good.tokens.begin(), good.tokens.end());
  other[5] = 256;
  dstrain::Batch bad = good;
  if (rank.rank() == rank.world_size() - 1) bad.tokens = other;
  tries("token", [&] { engine.train_batch(bad); });
  bad = good;
  bad.labels = {};
  tries("no labels", [&] { engine.train_batch(bad); });
  const std::vector<std::int32_t> ignored(good.labels.size(), dstrain::ignored_label);
  bad.labels = ignored;
  tries("ignored", [&] { engine.train_batch(bad); });
  bad = good;
  bad.sequences = -1;
  tries("negative", [&] { engine.train_batch(bad); });
  bad = good;
  bad.length = 33;
  tries("length", [&] { engine.train_batch(bad); });
  bad = good;
  bad.sequences = 100;
  tries("sequences", [&] { engine.train_batch(bad); });
  tries("early step", [&] { engine.step(); });
  tries("client state", [&] { engine.save_checkpoint(arguments.output, {.client_state = "[1"}); });
  const dstrain::Batch first = part(good, 0, engine.micro_batch());
  engine.forward_backward(first);
  tries("open step", [&] { engine.evaluate(first); });
  for (std::int64_t i = 1; i < engine.accumulation_steps(); ++i) engine.forward_backward(first);
  tries("one too many", [&] { engine.forward_backward(first); });
  engine.step();
  dstrain::Engine frozen = make_engine(rank, arguments, {.length = length, .trains = false});
  tries("frozen", [&] { frozen.train_batch(good); });
  tries("automatic", [&] {
    dstrain::Config::from_json(R"({"train_batch_size": "auto", "gradient_clipping": "auto"})");
  });
  tries("config", [&] { dstrain::Config::from_json(R"({"train_batch_sise": 2})"); });
  tries("model", [&] { dstrain::Model::from_pretrained("nowhere"); });
  const auto builds = [](const std::function<void(dstrain::UnitBuilder&)>& record) {
    (void)dstrain::ModelBuilder("own", {.vocabulary = 8, .positions = 8})
        .unit("one", record)
        .build();
  };
  tries("no end", [&] { builds([](auto& unit) { unit.embedding("tokens", {.features = 4}); }); });
  tries("no loss", [&] {
    builds([](auto& unit) { unit.write(unit.embedding("tokens", {.features = 4}), "x"); });
  });
  tries("rows", [&] {
    builds([](auto& unit) {
      unit.cross_entropy(unit.embedding("tokens", {.features = 4}), "classes", {.count = 8});
    });
  });
  tries("unread", [&] {
    (void)dstrain::ModelBuilder("own", {.positions = 8, .features = 2, .targets = 1})
        .unit("one", [](auto& unit) { unit.mean_value(unit.linear(unit.features(), "l", {2})); })
        .build();
  });
  tries("targets", [&] {
    (void)dstrain::ModelBuilder("own", {.positions = 8, .features = 2, .targets = 1})
        .unit("one", [](auto& unit) { unit.mean_squared_error(unit.features()); })
        .build();
  });
  tries("no sizes", [&] { dstrain::ModelBuilder("own", {.positions = 8}); });
  tries("no positions", [&] { dstrain::ModelBuilder("own", {.vocabulary = 8}); });
  tries("negative size", [&] { dstrain::ModelBuilder("own", {.vocabulary = 8, .targets = -1}); });
  tries("scale", [&] {
    builds([](auto& unit) { unit.scale(unit.embedding("tokens", {.features = 4}), NAN); });
  });
  tries("rate", [&] {
    builds([](auto& unit) { unit.dropout(unit.embedding("tokens", {.features = 4}), 1); });
  });
  const auto embeds = [&](const char* what, const auto& record) {
    tries(what, [&] {
      builds([&](auto& unit) { record(unit, unit.embedding("tokens", {.features = 6})); });
    });
  };
  embeds("window", [](auto& unit, auto x) { unit.attention(x, {.heads = 1, .window = -1}); });
  embeds("both ways",
         [](auto& unit, auto x) { unit.attention(x, {.heads = 1, .causal = false, .window = 2}); });
  embeds("rotary", [](auto& unit, auto x) { unit.attention(x, {.heads = 2, .rotary_base = NAN}); });
  embeds("turns", [](auto& unit, auto x) { unit.attention(x, {.heads = 2, .rotary_base = 1e4}); });
  embeds("shape", [](auto& unit, auto x) {
    unit.custom({x}, "c", std::make_shared<Silu>(), {.parameters = {{"p", {0}}}});
  });
  embeds("byte", [](auto& unit, auto x) { unit.linear(x, "\xff", {.outputs = 2}); });
  embeds("unread value", [](auto& unit, auto x) {
    unit.linear(x, "l", {.outputs = 2});
    unit.write(x, "x");
  });
  tries("too many", [&] { dstrain::ModelBuilder("own", {.vocabulary = std::int64_t{1} << 40}); });
  tries("no name", [&] { builds([](auto& unit) { unit.embedding("", {.features = 4}); }); });
  tries("features", [&] {
    dstrain::Batch batch = good;
    const std::vector<float> features(4);
    batch.features = features;
    engine.train_batch(batch);
  });
  tries("unknown", [&] { builds([](auto& unit) { unit.read("nothing"); }); });
  tries("heads", [&] {
    builds([](auto& unit) {
      unit.attention(unit.embedding("tokens", {.features = 4}), {.heads = 3});
    });
  });
  tries("two ends", [&] {
    builds([](auto& unit) {
      const dstrain::Value x = unit.embedding("tokens", {.features = 4});
      unit.write(x, "x");
      unit.write(x, "y");
    });
  });
  tries("calls", [&] {
    if (rank.rank() == 0) engine.evaluate(good);
    if (rank.rank() != 0) engine.logits(good);
  });
  tries("asks", [&] {
    if (rank.rank() == 0) (void)rank.stop_requested();
    if (rank.rank() != 0) (void)rank.save_requested();
  });
  tries("asks alone", [&] {
    if (rank.rank() == 0) (void)rank.stop_requested();
    if (rank.rank() != 0) engine.train_batch(good);
  });
  tries("saves alone", [&] {
    if (rank.rank() == 0) engine.save_checkpoint(arguments.output);
    if (rank.rank() != 0) engine.evaluate(good);
  });
  tries("loads alone", [&] {
    if (rank.rank() == 0) engine.evaluate(good);
    if (rank.rank() != 0) engine.load_checkpoint(arguments.output);
  });
  tries("told", [&] { engine.forward_backward(first, 100 + rank.rank()); });
  tries("gathers", [&] {
    (void)engine.gathered_parameters({engine.parameters()[rank.rank() == 0 ? 0 : 1].name});
  });
  {
    const auto gathered = engine.gathered_parameters({engine.parameters()[0].name});
    tries("gathered", [&] { engine.train_batch(good); });
  }
  tries("checkpoint itself", [&] {
    engine.save_checkpoint(arguments.output);
    engine.load_checkpoint(arguments.output + "/checkpoint-1");
  });
  tries("two ranks", [&] { dstrain::Rank(); });
  tries("good", [&] { engine.train_batch(good); });
}

double sum_of(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value);
  return sum;
}

/// Parameters that are seen and changed between steps.
void change_parameters(dstrain::Rank& rank, const Arguments& arguments) {
  dstrain::Engine engine = make_engine(rank, arguments);
  ByteSamples samples(arguments.text, length);
  std::vector<std::string> names;
  for (const dstrain::ParameterInfo& parameter : engine.parameters()) {
    names.push_back(parameter.name);
  }
  for (int i = 0; i < 2; ++i) print(rank, engine.train_batch(samples.next(rank, engine)));
  double all = 0;
  {
    dstrain::GatheredParameters gathered = engine.gathered_parameters(names);
    for (const std::string& name : names) all += sum_of(gathered[name]);
  }
  print(rank, engine.train_batch(samples.next(rank, engine)));
  {
    dstrain::GatheredParameters gathered = engine.gathered_parameters({names[1], names.back()});
    for (float& value : gathered[rank.rank() == 0 ? names[1] : names.back()]) value = 0.25;
  }
  print(rank, engine.train_batch(samples.next(rank, engine)));
  dstrain::GatheredParameters gathered = engine.gathered_parameters({names[1], names.back()});
  const double least = *std::ranges::min_element(gathered[names[1]]);
  const double most = *std::ranges::max_element(gathered[names.back()]);
  if (rank.rank() != 0) return;
  std::printf("sum %.6g, near 0.25: %d, of another rank: %d\n", all, least > 0.24, most == 0.25);
}

/// Two models that differ in whose SiLU they have, of classes of their own.
void use_own_layers(dstrain::Rank& rank, const Arguments& arguments) {
  for (const bool own : {false, true}) {
    dstrain::ModelBuilder builder("small", {.vocabulary = 256, .positions = length});
    builder
        .unit("first",
              [&](dstrain::UnitBuilder& unit) {
                const dstrain::Value x =
                    unit.embedding("tokens", {.features = 16, .positions = true});
                const dstrain::Value up = unit.linear(x, "up", {.outputs = 32});
                const dstrain::Value middle =
                    own ? unit.custom({up}, "silu", std::make_shared<Silu>())
                        : unit.activation(up, dstrain::Activation::silu);
                unit.write(unit.add(x, unit.linear(middle, "down", {.outputs = 16})), "x");
              })
        .unit("last", [](dstrain::UnitBuilder& unit) {
          unit.cross_entropy(unit.layer_norm(unit.read("x"), "norm"), "classes", {.count = 3});
        });
    auto engine = dstrain::initialize(rank, dstrain::Config::from_file(arguments.config),
                                      builder.build(), {.length = length});
    ByteSamples samples(arguments.text, length);
    while (engine.steps() < 5) {
      dstrain::Batch batch = samples.next(rank, engine);
      std::vector<std::int32_t> labels;
      for (const std::int32_t token : batch.tokens) labels.push_back(token % 3);
      batch.labels = labels;
      print(rank, engine.train_batch(batch));
    }
  }
}

/// Two models, of which one has a unit more that passes on what it has read.
void pass_on(dstrain::Rank& rank, const Arguments& arguments) {
  for (const bool passes : {false, true}) {
    dstrain::ModelBuilder builder("small", {.vocabulary = 256, .positions = length});
    builder.unit("first", [](dstrain::UnitBuilder& unit) {
      unit.write(unit.embedding("tokens", {.features = 16}), "x");
    });
    if (passes) {
      builder.unit("middle", [](dstrain::UnitBuilder& unit) {
        unit.write(unit.dropout(unit.read("x"), 0), "y");
      });
    }
    builder.unit("last", [&](dstrain::UnitBuilder& unit) {
      unit.cross_entropy(unit.read(passes ? "y" : "x"), "classes", {.count = 256});
    });
    auto engine = dstrain::initialize(rank, dstrain::Config::from_file(arguments.config),
                                      builder.build(), {.length = length});
    ByteSamples samples(arguments.text, length);
    while (engine.steps() < 3) print(rank, engine.train_batch(samples.next(rank, engine)));
  }
}

/// Ranks that do not agree about a factor of the loss.
void weigh_apart(dstrain::Rank& rank, const Arguments& arguments) {
  dstrain::ModelBuilder builder("apart", {.vocabulary = 256, .positions = length});
  builder.unit("first", [](dstrain::UnitBuilder& unit) {
    unit.write(unit.embedding("tokens", {.features = 8}), "x");
  });
  builder.unit("last", [&rank](dstrain::UnitBuilder& unit) {
    unit.cross_entropy(unit.read("x"), "classes",
                       {.count = 256, .factor = rank.rank() == 0 ? 0.5 : 0.25});
  });
  (void)dstrain::initialize(rank, dstrain::Config::from_file(arguments.config), builder.build());
}

/// Ranks that do not agree about the length.
void differ(dstrain::Rank& rank, const Arguments& arguments) {
  make_engine(rank, arguments, {.length = length - rank.rank()});
}

/// Trains until it is asked to stop, and saves whenever someone asks.
void serve(dstrain::Rank& rank, const Arguments& arguments) {
  dstrain::Engine engine = make_engine(rank, arguments);
  ByteSamples samples(arguments.text, length);
  while (!rank.stop_requested()) {
    print(rank, engine.train_batch(samples.next(rank, engine)));
    if (rank.save_requested()) engine.save_checkpoint(arguments.output);
  }
}

/// Goes on from its checkpoint, takes a step, saves and fails, until there are four steps.
void fail_after_a_save(dstrain::Rank& rank, const Arguments& arguments) {
  dstrain::Engine engine = make_engine(rank, arguments);
  engine.load_checkpoint(arguments.output);
  ByteSamples samples(arguments.text, length);
  print(rank, engine.train_batch(samples.next(rank, engine)));
  engine.save_checkpoint(arguments.output);
  if (engine.steps() < 4) std::exit(7);
}

/// Goes on from its checkpoint and saves it again, without a step.
void save_again(dstrain::Rank& rank, const Arguments& arguments) {
  dstrain::Engine engine = make_engine(rank, arguments);
  ByteSamples samples(arguments.text, length);
  if (!engine.load_checkpoint(arguments.output)) engine.train_batch(samples.next(rank, engine));
  engine.save_checkpoint(arguments.output);
  std::exit(7);
}

/// A unit that ends with what attention has made, beside one that ends with a layer behind it.
void write_attention(dstrain::Rank& rank, const Arguments& arguments) {
  for (const bool scaled : {false, true}) {
    dstrain::ModelBuilder builder("small", {.vocabulary = 256, .positions = length});
    builder
        .unit("first",
              [&](dstrain::UnitBuilder& unit) {
                const dstrain::Value made = unit.attention(
                    unit.embedding("tokens", {.features = 24, .positions = true}), {.heads = 2});
                unit.write(scaled ? unit.scale(made, 1) : made, "x");
              })
        .unit("last", [](dstrain::UnitBuilder& unit) {
          unit.cross_entropy(unit.read("x"), "classes", {.count = 256});
        });
    auto engine = dstrain::initialize(rank, dstrain::Config::from_file(arguments.config),
                                      builder.build(), {.length = length});
    ByteSamples samples(arguments.text, length);
    while (engine.steps() < 3) print(rank, engine.train_batch(samples.next(rank, engine)));
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run_mode(argc, argv,
                  {{"hand", train_by_hand},
                   {"labels", count_labels},
                   {"evaluate", evaluate},
                   {"state", keep_state},
                   {"refused", be_refused},
                   {"differ", differ},
                   {"weigh", weigh_apart},
                   {"parameters", change_parameters},
                   {"layers", use_own_layers},
                   {"pass", pass_on},
                   {"serve", serve},
                   {"fail", fail_after_a_save},
                   {"again", save_again},
                   {"attention", write_attention}});
}
