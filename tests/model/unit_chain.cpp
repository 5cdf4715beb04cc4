#include "tests/model/unit_chain.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>

#include "tests/support/typed_values.h"

namespace dstrain::test {
namespace {

/// What is not written shows: as the start of memory that a unit must fill.
constexpr float poison = std::numeric_limits<float>::quiet_NaN();

std::vector<float> memory_of(Bytes bytes) {
  return std::vector<float>(static_cast<std::size_t>(bytes) / sizeof(float) + 16, poison);
}

/// The bytes of `values` from the first 64-byte boundary.
HostView aligned_bytes(std::vector<float>& values) {
  void* start = values.data();
  std::size_t space = values.size() * sizeof(float);
  std::align(64, 1, start, space);
  return {start, DType::u8, {static_cast<std::int64_t>(space)}};
}

}  // namespace

/// Lends the tiles of a unit, and checks that it takes them in order and one at a time.
class UnitChain::Tiles final : public model::TileLender {
 public:
  Tiles(UnitChain& chain, const model::UnitSpec& spec) : chain_(chain), spec_(spec) {}

  /// What forward, then backward must have taken.
  [[nodiscard]] bool all_taken() const { return lent_ == none && next_ == 0; }

  TensorView acquire(std::size_t tile) override {
    DSTRAIN_CHECK(lent_ == none, "tile {} is still lent", lent_);
    DSTRAIN_CHECK(tile == (next_ < count() ? next_ : 2 * count() - 1 - next_), "tile {}", tile);
    next_ = (next_ + 1) % (2 * count());
    lent_ = tile;
    return rows(tile, chain_.parameter_view(name(tile)));
  }
  void release(std::size_t tile) override {
    DSTRAIN_CHECK(lent_ == tile, "tile {} is lent, not {}", lent_, tile);
    lent_ = none;
  }
  model::GradientTarget gradients(std::size_t tile) override {
    DSTRAIN_CHECK(written_ == none, "the gradients of tile {} are being written", written_);
    written_ = tile;
    const model::GradientTarget whole = chain_.gradient_target(name(tile));
    return {rows(tile, whole.values), accumulate.value_or(whole.accumulate)};
  }
  void reduce(std::size_t tile) override {
    DSTRAIN_CHECK(written_ == tile, "tile {} is being written, not {}", written_, tile);
    written_ = none;
  }

  /// Goes on where the forward of this unit has ended.
  void begin_backward() { next_ = count(); }
  std::optional<bool> accumulate{};  ///< what gradients() says; else whether they hold something

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  [[nodiscard]] std::size_t count() const { return spec_.tiles.size(); }
  [[nodiscard]] const std::string& name(std::size_t tile) const {
    return spec_.parameters[spec_.tiles[tile].parameter].name;
  }
  [[nodiscard]] TensorView rows(std::size_t tile, const TensorView& whole) const {
    return whole.rows(spec_.tiles[tile].first_row, spec_.tiles[tile].rows);
  }

  UnitChain& chain_;
  const model::UnitSpec& spec_;
  std::size_t next_ = 0;  ///< of forward's tiles, then of backward's
  std::size_t lent_ = none;
  std::size_t written_ = none;
};

/// Views of one call; they must live as long as the call.
struct UnitChain::Views {
  std::vector<TensorView> parameters, inputs, outputs, output_gradients;
  std::vector<model::GradientTarget> parameter_gradients, input_gradients;
  std::unique_ptr<Tiles> tiles;
};

UnitChain::UnitChain(const model::Model& model, model::BatchShape shape)
    : model_(model), shape_(shape) {
  Bytes most = 0;
  for (const auto& unit : model.units) {
    const model::UnitMemory memory = unit->memory(shape);
    most = std::max({most, memory.forward_workspace, memory.backward_workspace});
    saved.push_back(memory_of(memory.saved));
    for (const auto& parameter : unit->spec().parameters) {
      shapes_[parameter.name] = parameter.shape;
      const auto numel = static_cast<std::size_t>(parameter.shape.numel());
      parameters[parameter.name].assign(numel, poison);
      gradients[parameter.name].assign(numel, poison);
    }
    for (const auto& activation : unit->spec().writes) {
      const Bytes bytes =
          shape.on(activation.axis).rows() * activation.features * size_of(activation.dtype);
      const auto numel = static_cast<std::size_t>(bytes) / sizeof(float);
      activation_specs_[activation.name] = activation;
      activations[activation.name].assign(numel, poison);
      activation_gradients[activation.name].assign(numel, poison);
    }
  }
  workspace_ = memory_of(most);
}

void UnitChain::fill(std::uint64_t seed, float stddev) {
  for (auto& [name, values] : parameters) {
    values = random_values(static_cast<std::int64_t>(values.size()), ++seed, stddev);
    const bool norm = name.find("ln_") != std::string::npos;
    if (!norm || name.find("weight") == std::string::npos) continue;
    for (float& value : values) value += 1.0F;
  }
}

HostView UnitChain::parameter_view(const std::string& name) {
  std::vector<float>& values = parameters[name];
  if (model_.dtype == DType::f32) return {values, shapes_[name]};
  std::vector<std::uint16_t>& rounded = rounded_[name];
  rounded.clear();
  for (const float value : values) rounded.push_back(half_bits(value, model_.dtype));
  return {rounded.data(), model_.dtype, shapes_[name]};
}

model::GradientTarget UnitChain::gradient_target(const std::string& name) {
  return {HostView(gradients[name], shapes_[name]), written_[name]};
}

HostView UnitChain::activation_view(std::vector<float>& memory,
                                    const model::ActivationSpec& activation) {
  return {memory.data(), activation.dtype,
          Shape{shape_.sequences, shape_.on(activation.axis).tokens, activation.features}};
}

model::UnitCall UnitChain::call_of(std::size_t unit, Views& views) {
  const model::UnitSpec& spec = model_.units[unit]->spec();
  std::vector<std::string> names;
  for (const auto& parameter : spec.parameters) names.push_back(parameter.name);
  names.insert(names.end(), spec.borrowed.begin(), spec.borrowed.end());
  for (const std::string& name : names) {
    views.parameters.push_back(parameter_view(name));
    views.parameter_gradients.push_back(gradient_target(name));
  }
  for (const model::ParameterTile& tile : spec.tiles) {
    views.parameters[tile.parameter] = {};
    views.parameter_gradients[tile.parameter] = {};
  }
  views.tiles = std::make_unique<Tiles>(*this, spec);
  for (const std::string& name : spec.reads) {
    const model::ActivationSpec& activation = activation_specs_[name];
    views.inputs.push_back(activation_view(activations[name], activation));
    views.input_gradients.push_back(
        {activation_view(activation_gradients[name], activation), written_[name]});
  }
  for (const auto& activation : spec.writes) {
    views.outputs.push_back(activation_view(activations[activation.name], activation));
    views.output_gradients.push_back(
        activation_view(activation_gradients[activation.name], activation));
  }
  model::UnitCall call;
  call.shape = shape_;
  call.tokens = HostView(tokens, {shape_.sequences, shape_.tokens});
  call.labels = HostView(labels, {shape_.sequences, shape_.tokens});
  if (shape_.source > 0) {
    call.source = HostView(source, {shape_.sequences, shape_.source});
    call.source_count = HostView(source_count, {shape_.sequences});
  }
  call.label_weight = HostView(std::span(&label_weight_, 1), {1});
  call.parameters = views.parameters;
  call.inputs = views.inputs;
  call.outputs = views.outputs;
  call.saved = aligned_bytes(saved[unit]);
  call.workspace = aligned_bytes(workspace_);
  call.dropout = dropout;
  call.dropout.counter = HostView(counter, {2});
  call.dropout.unit = static_cast<std::uint32_t>(unit);
  call.tiles = views.tiles.get();
  call.parameter_gradients = views.parameter_gradients;
  call.output_gradients = views.output_gradients;
  call.input_gradients = views.input_gradients;
  call.loss = HostView(&loss_, DType::f64, {1});
  return call;
}

void UnitChain::forward() {
  for (std::size_t unit = 0; unit + 1 < model_.units.size(); ++unit) {
    Views views;
    model_.units[unit]->plan(shape_)->forward(call_of(unit, views), stream_);
  }
}

double UnitChain::loss() {
  Views views;
  loss_ = 0;
  model_.units.back()->plan(shape_)->forward(call_of(model_.units.size() - 1, views), stream_);
  return loss_;
}

double UnitChain::backward(float label_weight) {
  label_weight_ = label_weight;
  loss_ = 0;
  written_.clear();
  for (std::size_t unit = model_.units.size(); unit-- > 0;) {
    Views views;
    const model::UnitCall call = call_of(unit, views);
    views.tiles->begin_backward();
    model_.units[unit]->plan(shape_)->backward(call, stream_);
    DSTRAIN_CHECK(views.tiles->all_taken(), "unit {} has left tiles", unit);
    const model::UnitSpec& spec = model_.units[unit]->spec();
    for (const auto& parameter : spec.parameters) written_[parameter.name] = true;
    for (const std::string& name : spec.borrowed) written_[name] = true;
    for (const std::string& name : spec.reads) written_[name] = true;
  }
  return loss_;
}

void UnitChain::backward_unit(std::size_t unit, bool accumulate) {
  Views views;
  model::UnitCall call = call_of(unit, views);
  for (auto& target : views.parameter_gradients) target.accumulate = accumulate;
  for (auto& target : views.input_gradients) target.accumulate = accumulate;
  views.tiles->accumulate = accumulate;
  views.tiles->begin_backward();
  model_.units[unit]->plan(shape_)->backward(call, stream_);
}

std::vector<float> UnitChain::last_logits() {
  const Shape shape{shape_.sequences, model_.vocabulary};
  std::vector<float> logits(static_cast<std::size_t>(shape.numel()), poison);
  Views views;
  model::UnitCall call = call_of(model_.units.size() - 1, views);
  call.logits = HostView(logits, shape);
  model_.units.back()->plan(shape_)->forward(call, stream_);
  return logits;
}

}  // namespace dstrain::test
