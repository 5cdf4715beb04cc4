#include "runtime/model/unit_builder.h"

#include "runtime/model/layers/activation_layer.h"
#include "runtime/model/layers/attention_layer.h"
#include "runtime/model/layers/classifier_layer.h"
#include "runtime/model/layers/features_layer.h"
#include "runtime/model/layers/mean_loss_layer.h"
#include "runtime/model/layers/norm_layer.h"
#include "runtime/model/layers/scale_layer.h"
#include "runtime/model/loss_unit.h"
#include "runtime/model/recorded_unit.h"

namespace dstrain::model {
namespace {

constexpr ParameterInit zeros{ParameterInit::Kind::zeros};
constexpr ParameterInit ones{ParameterInit::Kind::ones};

}  // namespace

UnitBuilder::UnitBuilder(std::string name, std::string_view prefix, const UnitOptions& options)
    : prefix_(prefix), options_(options) {
  record_.spec.name = std::move(name);
  record_.dtype = options.dtype;
}

std::int64_t UnitBuilder::features(Value value) const {
  return record_.value(value.index).features;
}

ParameterRef UnitBuilder::own(std::string_view name, Shape shape, ParameterInit init) {
  record_.spec.parameters.push_back({fmt::format("{}{}", prefix_, name), shape, init});
  return {record_.spec.parameters.size() - 1};
}

ParameterRef UnitBuilder::borrow(const std::string& name) {
  record_.spec.borrowed.push_back(name);
  return {record_.spec.borrowed.size() - 1, true};
}

Value UnitBuilder::add_layer(std::unique_ptr<const Layer> layer,
                             const std::vector<Value>& inputs,
                             std::int64_t features,
                             Axis axis) {
  if (!inputs.empty()) axis = record_.value(inputs.front().index).axis;
  RecordedLayer recorded{.layer = std::move(layer)};
  for (const Value& input : inputs) recorded.inputs.push_back(input.index);
  recorded.output = static_cast<int>(record_.values.size());
  record_.values.push_back({.features = features,
                            .dtype = options_.dtype,
                            .axis = axis,
                            .producer = static_cast<int>(record_.layers.size())});
  record_.layers.push_back(std::move(recorded));
  return {static_cast<int>(record_.values.size()) - 1};
}

Value UnitBuilder::read(const std::string& activation, std::int64_t features, Axis axis) {
  record_.values.push_back({.features = features,
                            .dtype = options_.dtype,
                            .axis = axis,
                            .input = static_cast<int>(record_.spec.reads.size())});
  record_.spec.reads.push_back(activation);
  return {static_cast<int>(record_.values.size()) - 1};
}

Value UnitBuilder::embedding(const EmbeddingLayer::Tables& tables, std::int64_t features) {
  next_place_ = 0;
  by_rows_ = false;
  return add_layer(std::make_unique<EmbeddingLayer>(tables), {}, features, tables.axis);
}

Value UnitBuilder::batch_features(std::int64_t count) {
  record_.spec.features = count;
  return add_layer(std::make_unique<FeaturesLayer>(), {}, count);
}

Value UnitBuilder::layer_norm(Value input, std::string_view name, float eps) {
  const std::int64_t channels = features(input);
  const NormLayer::Parameters parameters{own(fmt::format("{}.weight", name), {channels}, ones),
                                         own(fmt::format("{}.bias", name), {channels}, zeros)};
  return add_layer(
      std::make_unique<NormLayer>(parameters, NormLayer::Options{NormLayer::Kind::layer_norm, eps}),
      {input}, channels);
}

Value UnitBuilder::rms_norm(Value input, std::string_view name, float eps, std::int64_t groups) {
  const std::int64_t channels = features(input);
  const NormLayer::Parameters parameters{
      own(fmt::format("{}.weight", name), {channels / groups}, ones)};
  return add_layer(std::make_unique<NormLayer>(
                       parameters, NormLayer::Options{NormLayer::Kind::rms_norm, eps, groups}),
                   {input}, channels);
}

Value UnitBuilder::linear(Value input, std::string_view name, const Linear& linear) {
  const LinearLayer::Sizes sizes{features(input), linear.outputs, linear.layout};
  LinearLayer::Parameters parameters{
      own(fmt::format("{}.weight", name), sizes.weight(), linear.init)};
  if (linear.bias) parameters.bias = own(fmt::format("{}.bias", name), {sizes.outputs}, zeros);
  if (options_.in_splits > 1) {
    const auto tiles = split_rows(parameters.weight.index, sizes.weight()[0], options_.in_splits);
    record_.spec.tiles.insert(record_.spec.tiles.end(), tiles.begin(), tiles.end());
  }
  return add_layer(std::make_unique<LinearLayer>(parameters, sizes, options_), {input},
                   sizes.outputs);
}

Value UnitBuilder::add_attention(const std::vector<Value>& inputs, const Attention& attention) {
  const auto form = inputs.size() == 1 ? AttentionLayer::Form::packed : AttentionLayer::Form::apart;
  const std::size_t key = form == AttentionLayer::Form::packed ? 0 : 1;
  const Axis keys = record_.value(inputs[key].index).axis;
  by_rows_ = false;
  DSTRAIN_CHECK(keys == Axis::source || record_.value(inputs[0].index).axis == keys,
                "a source attends to its target in unit {}", record_.spec.name);
  const AttentionLayer::Options options{.heads = attention.heads,
                                        .kv_heads = attention.kv_heads,
                                        .head_size = attention.head_size,
                                        .rule = attention.rule,
                                        .dropout = place(attention.dropout),
                                        .form = form,
                                        .queries = record_.value(inputs[0].index).axis,
                                        .keys = keys,
                                        .bias = attention.bias};
  return add_layer(std::make_unique<AttentionLayer>(options, options_.device), inputs,
                   attention.heads * attention.head_size);
}

Value UnitBuilder::attention(const Projections& projections, const Attention& attention) {
  return add_attention({projections.query, projections.key, projections.value}, attention);
}

Value UnitBuilder::attention(Value packed, const Attention& attention) {
  return add_attention({packed}, attention);
}

Value UnitBuilder::activation(Value input, ops::Activation kind) {
  return add_layer(std::make_unique<ActivationLayer>(kind, ActivationLayer::Form::plain), {input},
                   features(input));
}

Value UnitBuilder::gated(Value gate, Value factor, ops::Activation kind) {
  return add_layer(std::make_unique<ActivationLayer>(kind, ActivationLayer::Form::gated),
                   {gate, factor}, features(gate));
}

Value UnitBuilder::gated(Value packed, ops::Activation kind) {
  return add_layer(std::make_unique<ActivationLayer>(kind, ActivationLayer::Form::packed), {packed},
                   features(packed) / 2);
}

Value UnitBuilder::dropout(Value input, float rate) {
  const DropoutPlace at = place(rate);
  if (rate == 0) return input;
  return add_layer(std::make_unique<DropoutLayer>(at), {input}, features(input));
}

Value UnitBuilder::scale(Value input, float factor) {
  return add_layer(std::make_unique<ScaleLayer>(factor), {input}, features(input));
}

Value UnitBuilder::add(Value residual, Value branch, float dropout) {
  return add_layer(std::make_unique<AddLayer>(place(dropout)), {residual, branch},
                   features(residual));
}

Value UnitBuilder::custom(std::unique_ptr<const Layer> layer,
                          const std::vector<Value>& inputs,
                          std::int64_t features) {
  by_rows_ = false;
  return add_layer(std::move(layer), inputs, features);
}

std::unique_ptr<Unit> UnitBuilder::finish(Value output, const std::string& activation) {
  RecordedValue& value = record_.values[static_cast<std::size_t>(output.index)];
  value.output = static_cast<int>(record_.spec.writes.size());
  record_.spec.writes.push_back({activation, value.features, value.dtype, value.axis});
  return std::make_unique<RecordedUnit>(std::move(record_));
}

LossSpec& UnitBuilder::add_loss(std::unique_ptr<const Layer> layer, Value input, LossPart part) {
  DSTRAIN_CHECK(by_rows_, "unit {} computes the loss and not by rows", record_.spec.name);
  record_.layers.push_back({std::move(layer), {input.index}});
  if (!record_.spec.loss) record_.spec.loss = {.outputs = part.outputs};
  record_.spec.loss->factors.push_back(part.factor);
  return *record_.spec.loss;
}

void UnitBuilder::cross_entropy(Value input,
                                ParameterRef weight,
                                std::int64_t classes,
                                float factor) {
  const ClassifierLayer::Options options{features(input), classes, factor};
  add_loss(std::make_unique<ClassifierLayer>(weight, options, options_), input, {classes, factor})
      .classes = classes;
}

void UnitBuilder::mean_squared_error(Value input, float factor) {
  using Terms = MeanLossLayer::Terms;
  const std::int64_t targets = features(input);
  add_loss(std::make_unique<MeanLossLayer>(Terms::squared_errors, factor), input, {targets, factor})
      .targets = targets;
}

void UnitBuilder::mean_value(Value input, float factor) {
  add_loss(std::make_unique<MeanLossLayer>(MeanLossLayer::Terms::values, factor), input,
           {features(input), factor});
}

std::unique_ptr<Unit> UnitBuilder::finish_loss() {
  return std::make_unique<LossUnit>(std::move(record_));
}

}  // namespace dstrain::model
