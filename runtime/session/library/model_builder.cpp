#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/model/families.h"
#include "runtime/model/rope_scaling.h"
#include "runtime/model/unit_builder.h"
#include "runtime/session/library/host_layer.h"
#include "runtime/session/library/impl.h"
#include "zero/flat_layout.h"

namespace dstrain {
namespace {

using Activations = std::map<std::string, std::int64_t, std::less<>>;  ///< their features

model::ParameterInit init_of(const Initial& initial) {
  using Kind = model::ParameterInit::Kind;
  if (initial.kind == Initial::Kind::zeros) return {Kind::zeros};
  if (initial.kind == Initial::Kind::ones) return {Kind::ones};
  if (initial.stddev >= 0 && std::isfinite(initial.stddev))
    return {Kind::normal, static_cast<float>(initial.stddev)};
  fail(ErrorCode::config, "a parameter's stddev is {}", initial.stddev);
}

ops::Activation kind_of(Activation kind) {
  switch (kind) {
    case Activation::gelu_tanh:
      return ops::Activation::gelu_tanh;
    case Activation::gelu:
      return ops::Activation::gelu;
    case Activation::quick_gelu:
      return ops::Activation::quick_gelu;
    case Activation::silu:
      return ops::Activation::silu;
    case Activation::relu:
      return ops::Activation::relu;
  }
  fail(ErrorCode::config, "there is no activation {}", static_cast<int>(kind));
}

}  // namespace

/// A unit that is being recorded.
class UnitBuilder::Impl {
 public:
  Impl(const std::string& called,
       const model::UnitOptions& options,
       const ModelBuilder::Sizes& sizes,
       Activations& written)
      : name(called), builder(called, called + ".", options), model(sizes), activations(written) {}

  [[noreturn]] void refuse(const std::string& problem) const {
    fail(ErrorCode::config, "unit {}: {}", name, problem);
  }
  /// The features of a value of this unit.
  [[nodiscard]] std::int64_t features(Value value) const {
    refuse_ended();
    return features_of_loss(value);
  }
  /// The same where losses may stand before.
  [[nodiscard]] std::int64_t features_of_loss(Value value) const {
    if (value.index >= 0 && value.index < std::ssize(widths)) {
      return widths[static_cast<std::size_t>(value.index)];
    }
    refuse("a value is not of this unit");
  }
  Value keep(model::Value value, std::int64_t features) {
    if (features < 1) refuse(fmt::format("a layer has {} features", features));
    refuse_ended();
    recorded.push_back(value);
    widths.push_back(features);
    return {static_cast<int>(recorded.size()) - 1};
  }
  [[nodiscard]] model::Value at(Value value) const {
    (void)features(value);
    return recorded[static_cast<std::size_t>(value.index)];
  }
  /// A value that a loss is of.
  [[nodiscard]] model::Value at_loss(Value value) const {
    if (unit) refuse("a loss follows write(), which ends a unit");
    if (!by_rows) {
      refuse(
          "computes the loss, and sees each position by itself: attention, dropout, "
          "embeddings and custom layers belong into the unit before");
    }
    (void)features_of_loss(value);
    return recorded[static_cast<std::size_t>(value.index)];
  }
  void add_classes(std::int64_t count) {
    if (classes > 0 && classes != count) {
      refuse(fmt::format("labels are of {} classes and of {}", classes, count));
    }
    classes = count;
    losses = true;
  }
  [[nodiscard]] float factor(double value) const {
    const auto factor = static_cast<float>(value);
    if (!std::isfinite(factor)) refuse(fmt::format("a factor is {}", value));
    return factor;
  }
  [[nodiscard]] float dropout(double rate) const {
    if (rate >= 0 && rate < 1) return static_cast<float>(rate);
    refuse(fmt::format("a dropout rate is {}, not at least 0 and below 1", rate));
  }
  [[nodiscard]] float epsilon(double value) const {
    if (value > 0 && std::isfinite(value)) return static_cast<float>(value);
    refuse(fmt::format("an epsilon is {}, not above 0", value));
  }
  /// The name of a layer with parameters.
  [[nodiscard]] const std::string& layer(const std::string& given) const {
    if (given.empty()) refuse("a layer with parameters has no name");
    if (find_invalid_utf8(given)) refuse("the name of a layer is not UTF-8");
    return given;
  }
  void end(std::unique_ptr<model::Unit> ended) { unit = std::move(ended); }
  /// The unit, after all of its layers.
  std::unique_ptr<model::Unit> finish() {
    if (losses) return builder.finish_loss();
    if (!unit) refuse("ends with neither write() nor a loss");
    return std::move(unit);
  }
  void refuse_ended() const {
    if (unit || losses)
      refuse(
          "layers follow write() or a loss, which end a unit: record all layers before the first "
          "of "
          "these");
  }
  [[nodiscard]] bool is_attention(Value value) const {
    return std::ranges::find(made_by_attention, value.index) != made_by_attention.end();
  }
  [[nodiscard]] bool is_read(model::Value value) const {
    return std::ranges::find(reads, value.index) != reads.end();
  }

  std::string name;
  model::UnitBuilder builder;
  const ModelBuilder::Sizes& model;
  Activations& activations;
  std::vector<model::Value> recorded;
  std::vector<std::int64_t> widths;  ///< of these
  std::vector<int> reads;            ///< internal values that other units have written
  std::vector<int> made_by_attention;
  std::unique_ptr<model::Unit> unit;
  std::int64_t classes = 0;    ///< of the labels
  bool losses = false;         ///< some were recorded
  std::int64_t attention = 0;  ///< heads x head size
  bool by_rows = true;         ///< a loss may follow
};

Value UnitBuilder::read(const std::string& activation) {
  const auto found = impl_.activations.find(activation);
  if (found == impl_.activations.end()) {
    impl_.refuse(fmt::format("no unit before it writes {}", activation));
  }
  impl_.refuse_ended();
  const model::Value value = impl_.builder.read(activation, found->second);
  impl_.reads.push_back(value.index);
  return impl_.keep(value, found->second);
}

Value UnitBuilder::embedding(const std::string& name, const Embedding& embedding) {
  impl_.refuse_ended();
  if (impl_.model.vocabulary == 0) impl_.refuse(name + " embeds tokens of no vocabulary");
  const model::ParameterInit init = init_of(embedding.initial);
  if (embedding.features < 1) impl_.refuse(fmt::format("{} has no features", name));
  model::EmbeddingLayer::Tables tables{impl_.builder.own(
      impl_.layer(name) + ".weight", {impl_.model.vocabulary, embedding.features}, init)};
  if (embedding.positions) {
    tables.positions =
        impl_.builder.own(name + ".positions", {impl_.model.positions, embedding.features}, init);
  }
  impl_.by_rows = false;
  return impl_.keep(impl_.builder.embedding(tables, embedding.features), embedding.features);
}

Value UnitBuilder::features() {
  if (impl_.model.features == 0) impl_.refuse("features() of a model whose Sizes have none");
  return impl_.keep(impl_.builder.batch_features(impl_.model.features), impl_.model.features);
}

Value UnitBuilder::layer_norm(Value input, const std::string& name, double epsilon) {
  return impl_.keep(
      impl_.builder.layer_norm(impl_.at(input), impl_.layer(name), impl_.epsilon(epsilon)),
      impl_.features(input));
}

Value UnitBuilder::rms_norm(Value input, const std::string& name, double epsilon) {
  return impl_.keep(
      impl_.builder.rms_norm(impl_.at(input), impl_.layer(name), impl_.epsilon(epsilon)),
      impl_.features(input));
}

Value UnitBuilder::linear(Value input, const std::string& name, const Linear& linear) {
  if (linear.outputs < 1) impl_.refuse(fmt::format("{} has no outputs", name));
  return impl_.keep(
      impl_.builder.linear(
          impl_.at(input), impl_.layer(name),
          {.outputs = linear.outputs, .init = init_of(linear.initial), .bias = linear.bias}),
      linear.outputs);
}

Value UnitBuilder::attention(Value packed, const Attention& attention) {
  const std::int64_t kv_heads = attention.kv_heads > 0 ? attention.kv_heads : attention.heads;
  const std::int64_t parts = attention.heads + 2 * kv_heads;
  const std::int64_t width = impl_.features(packed);
  if (attention.kv_heads < 0 || attention.window < 0) {
    impl_.refuse("attention() has a negative number of kv_heads, or a negative window");
  }
  if (attention.window > 0 && !attention.causal) {
    impl_.refuse("attention() with a window is causal: a window ends at the query's own position");
  }
  if (!(attention.rotary_base >= 0) || !std::isfinite(attention.rotary_base)) {
    impl_.refuse(
        fmt::format("a rotary_base is {}, not above 0, or 0 for none", attention.rotary_base));
  }
  if (attention.heads < 1 || attention.heads % kv_heads != 0 || width % parts != 0) {
    impl_.refuse(fmt::format("{} features are not {} queries, {} keys and {} values of one width",
                             width, attention.heads, kv_heads, kv_heads));
  }
  const std::int64_t head_size = width / parts;
  if (attention.rotary_base > 0 && head_size % 2 != 0) {
    impl_.refuse(
        fmt::format("rotary positions turn pairs of features, and a head has {}", head_size));
  }
  ops::AttentionRule rule{.causal = attention.causal,
                          .window = attention.window,
                          .divisor = std::sqrt(static_cast<float>(head_size))};
  if (attention.rotary_base > 0) {
    rule.rotary = model::make_rotary({head_size}, static_cast<float>(attention.rotary_base), {});
  }
  impl_.by_rows = false;
  impl_.attention += attention.heads * head_size;
  const Value made = impl_.keep(
      impl_.builder.attention(impl_.at(packed), {.heads = attention.heads,
                                                 .kv_heads = kv_heads,
                                                 .head_size = head_size,
                                                 .rule = rule,
                                                 .dropout = impl_.dropout(attention.dropout)}),
      attention.heads * head_size);
  impl_.made_by_attention.push_back(made.index);
  return made;
}

Value UnitBuilder::activation(Value input, Activation kind) {
  return impl_.keep(impl_.builder.activation(impl_.at(input), kind_of(kind)),
                    impl_.features(input));
}

Value UnitBuilder::gated(Value packed, Activation kind) {
  const std::int64_t width = impl_.features(packed);
  if (width % 2 != 0) impl_.refuse(fmt::format("gated() halves {} features", width));
  return impl_.keep(impl_.builder.gated(impl_.at(packed), kind_of(kind)), width / 2);
}

Value UnitBuilder::dropout(Value input, double rate) {
  impl_.by_rows = impl_.by_rows && rate == 0;
  return impl_.keep(impl_.builder.dropout(impl_.at(input), impl_.dropout(rate)),
                    impl_.features(input));
}

Value UnitBuilder::scale(Value input, double factor) {
  return impl_.keep(impl_.builder.scale(impl_.at(input), impl_.factor(factor)),
                    impl_.features(input));
}

Value UnitBuilder::add(Value residual, Value branch, double dropout) {
  if (impl_.features(residual) != impl_.features(branch)) {
    impl_.refuse(fmt::format("add() of {} and {} features", impl_.features(residual),
                             impl_.features(branch)));
  }
  impl_.by_rows = impl_.by_rows && dropout == 0;
  return impl_.keep(impl_.builder.add(impl_.at(residual), impl_.at(branch), impl_.dropout(dropout)),
                    impl_.features(residual));
}

Value UnitBuilder::custom(const std::vector<Value>& inputs,
                          const std::string& name,
                          std::shared_ptr<const CustomLayer> layer,
                          const CustomLayerOptions& options) {
  if (inputs.empty() || !layer) impl_.refuse(name + " needs a layer and an input");
  if (options.features < 0) impl_.refuse(fmt::format("{} has {} features", name, options.features));
  std::vector<model::Value> values;
  values.reserve(inputs.size());
  for (const Value& input : inputs) values.push_back(impl_.at(input));
  std::vector<model::ParameterRef> parameters;
  for (const CustomParameter& parameter : options.parameters) {
    if (parameter.name.empty()) impl_.refuse(name + " has a parameter without a name");
    if (std::ranges::any_of(parameter.shape, [](std::int64_t size) { return size < 1; })) {
      impl_.refuse(fmt::format("{}.{} has a dimension below 1", name, parameter.name));
    }
    if (parameter.shape.empty() || parameter.shape.size() > Shape::rank_max) {
      impl_.refuse(fmt::format("{}.{} has {} dimensions, not 1 to {}", name, parameter.name,
                               parameter.shape.size(), Shape::rank_max));
    }
    parameters.push_back(impl_.builder.own(impl_.layer(name) + "." + impl_.layer(parameter.name),
                                           Shape(std::span<const std::int64_t>(parameter.shape)),
                                           init_of(parameter.initial)));
  }
  impl_.by_rows = false;
  const std::int64_t features =
      options.features > 0 ? options.features : impl_.features(inputs.front());
  return impl_.keep(
      impl_.builder.custom(make_host_layer(std::move(layer), inputs.size(), std::move(parameters)),
                           values, features),
      features);
}

void UnitBuilder::write(Value value, const std::string& activation) {
  model::Value output = impl_.at(value);
  // Another unit's memory is not this one's to write: a copy is.
  // Backward may read what attention has made, and another unit's values are gone by then.
  if (impl_.is_read(output) || impl_.is_attention(value)) output = impl_.builder.scale(output, 1);
  if (!impl_.activations.emplace(activation, impl_.features(value)).second) {
    impl_.refuse(fmt::format("{} is written twice", activation));
  }
  impl_.end(impl_.builder.finish(output, activation));
}

void UnitBuilder::cross_entropy(Value input, const std::string& name, const Classes& classes) {
  if (classes.count < 2) impl_.refuse(fmt::format("cross_entropy() of {} classes", classes.count));
  const model::Value logits_of = impl_.at_loss(input);
  const model::ParameterRef weight =
      impl_.builder.own(impl_.layer(name) + ".weight",
                        {classes.count, impl_.features_of_loss(input)}, init_of(classes.initial));
  impl_.add_classes(classes.count);
  impl_.builder.cross_entropy(logits_of, weight, classes.count, impl_.factor(classes.factor));
}

void UnitBuilder::cross_entropy_tied(Value input, const std::string& weight, double factor) {
  const model::Value logits_of = impl_.at_loss(input);
  const std::int64_t tokens = impl_.model.vocabulary;
  if (tokens == 0) impl_.refuse("cross_entropy_tied() of a model without a vocabulary");
  impl_.add_classes(tokens);
  impl_.builder.cross_entropy(logits_of, impl_.builder.borrow(weight), tokens,
                              impl_.factor(factor));
}

void UnitBuilder::mean_squared_error(Value input, double factor) {
  const model::Value predictions = impl_.at_loss(input);
  const std::int64_t features = impl_.features_of_loss(input);
  if (features != impl_.model.targets) {
    impl_.refuse(fmt::format("mean_squared_error() of {} and {}", counted(features, "feature"),
                             counted(impl_.model.targets, "target")));
  }
  impl_.losses = true;
  impl_.builder.mean_squared_error(predictions, impl_.factor(factor));
}

void UnitBuilder::mean_value(Value input, double factor) {
  const model::Value values = impl_.at_loss(input);
  impl_.losses = true;
  impl_.builder.mean_value(values, impl_.factor(factor));
}

namespace {

std::string config_json(const std::string& name, const ModelBuilder::Sizes& sizes, DType dtype) {
  return nlohmann::ordered_json{{"model_type", name},
                                {model::own_model_key, true},
                                {"vocab_size", sizes.vocabulary},
                                {"max_position_embeddings", sizes.positions},
                                {"torch_dtype", model::torch_dtype_name(dtype)}}
      .dump(2);
}

/// Borrowed parameters are those of a unit before, of the right shape.
void check_tied(const model::Model& model, std::int64_t vocabulary) {
  const std::vector<model::ParameterSpec> all = model.parameters();
  const model::UnitSpec& last = model.units.back()->spec();
  for (const std::string& name : last.borrowed) {
    const auto found = std::ranges::find(all, name, &model::ParameterSpec::name);
    if (found == all.end()) {
      fail(ErrorCode::config, "unit {}: no unit has the parameter {}", last.name, name);
    }
    if (found->shape.rank() != 2 || found->shape[0] != vocabulary) {
      fail(ErrorCode::config, "unit {}: {} has no row for each token", last.name, name);
    }
  }
}

}  // namespace

ModelBuilder::ModelBuilder(const std::string& name, const Sizes& sizes)
    : name_(name), sizes_(sizes) {
  const auto refuse = [&](const std::string& problem) {
    fail(ErrorCode::config, "model {}: Sizes: {}", name.empty() ? "without a name" : name, problem);
  };
  if (name.empty()) refuse("a model needs a name, which its config.json takes as model_type");
  if (find_invalid_utf8(name)) refuse("its name is not UTF-8");
  for (const auto& [what, size] :
       {std::pair("vocabulary", sizes.vocabulary), std::pair("positions", sizes.positions),
        std::pair("features", sizes.features), std::pair("targets", sizes.targets)}) {
    if (size < 0) refuse(fmt::format("{} is {}; it cannot be negative", what, size));
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    if (size > most) refuse(fmt::format("{} is {}; at most {} are possible", what, size, most));
  }
  if (sizes.vocabulary == 0 && sizes.features == 0) {
    refuse("vocabulary and features are 0; a model reads tokens, features or both");
  }
  if (sizes.positions == 0) {
    refuse("positions is 0; give the length of the longest sequence, 1 for single vectors");
  }
}

ModelBuilder& ModelBuilder::unit(const std::string& name,
                                 std::function<void(UnitBuilder&)> record) {
  if (name.empty()) fail(ErrorCode::config, "model {}: a unit has no name", name_);
  if (find_invalid_utf8(name)) {
    fail(ErrorCode::config, "model {}: the name of a unit is not UTF-8", name_);
  }
  if (!record) fail(ErrorCode::config, "model {}: unit {} has no function", name_, name);
  units_.push_back({name, std::move(record)});
  return *this;
}

/// Records all units for a device and a precision.
class ModelBuilder::Recording {
 public:
  Recording(const ModelBuilder& builder, const model::UnitOptions& options)
      : builder_(builder), options_(options) {
    model.name = builder.name_;
    model.dtype = options.dtype;
    model.device = options.device;
    model.vocabulary = builder.sizes_.vocabulary;
    model.positions = builder.sizes_.positions;
    model.outputs_first = true;
    model.config_json = config_json(builder.name_, builder.sizes_, options.dtype);
    for (const Unit& unit : builder.units_) record(unit);
    if (model.units.empty() || !model.units.back()->spec().loss) {
      fail(ErrorCode::config, "model {}: no unit ends with a loss", builder.name_);
    }
    if (model.features() != builder_.sizes_.features ||
        model.loss().targets != builder_.sizes_.targets) {
      fail(ErrorCode::config, "model {}: has {} and {}, of which its units read {} and {}",
           builder_.name_, counted(builder_.sizes_.features, "feature"),
           counted(builder_.sizes_.targets, "target"), model.features(), model.loss().targets);
    }
    check_tied(model, model.vocabulary);
  }

  model::Model model;

 private:
  void record(const Unit& unit) {
    UnitBuilder::Impl impl(unit.name, options_, builder_.sizes_, activations_);
    if (!model.units.empty() && model.units.back()->spec().loss) {
      impl.refuse("follows the unit that computes the loss");
    }
    UnitBuilder recorder(impl);
    try {
      unit.record(recorder);
      model.units.push_back(impl.finish());
    } catch (const Error& error) {
      if (error.code() != ErrorCode::internal) throw;
      const std::string_view text = error.what();
      impl.refuse(
          fmt::format("its layers do not fit together: {}", text.substr(text.rfind(": ") + 2)));
    }
    if (impl.attention > 0) {
      model.attention.push_back({.width = impl.attention, .causal = true});
      ++model.layers;
    }
    model.hidden = std::max(model.hidden, impl.widths.front());
  }

  const ModelBuilder& builder_;
  const model::UnitOptions options_;
  Activations activations_;
};

/// Finds what does not fit together where no layer has noticed.
ModelBuilder::Recording ModelBuilder::check() const {
  const model::UnitOptions options;
  try {
    Recording recording(*this, options);
    const zero::FlatLayout layout(recording.model, {});
    engine::Engine::activation_bytes(
        recording.model, {.shape = {1, sizes_.positions}, .mode = engine::FrameMode::training});
    return recording;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::internal) throw;
    const std::string_view text = error.what();
    fail(ErrorCode::config, "model {}: its units do not fit together: {}", name_,
         text.substr(text.rfind(": ") + 2));
  }
}

Model ModelBuilder::build(const std::filesystem::path& weights) const {
  std::error_code ignored;
  if (!weights.empty() && !std::filesystem::is_directory(weights, ignored)) {
    fail(ErrorCode::input, "model {}: {}: no such directory", name_, weights.string());
  }
  const Recording checked = check();
  return Model(std::make_unique<Model::Impl>(Model::Impl{
      .settings = {.directory = weights.string(), .named_by = "ModelBuilder::build"},
      .make = [builder = *this](
                  const model::UnitOptions& options) { return Recording(builder, options).model; },
      .vocabulary = sizes_.vocabulary,
      .hidden = checked.model.hidden}));
}

}  // namespace dstrain
