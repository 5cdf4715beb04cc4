#include "runtime/session/library/host_layer.h"

#include <utility>

#include "runtime/ops/convert.h"

namespace dstrain {
namespace {

/// Brings tensors to the host in f32, and back.
std::vector<float> to_host(const TensorView& view, StreamView stream) {
  std::vector<float> values(static_cast<std::size_t>(view.numel()));
  ops::convert(view.reshaped({view.numel()}), HostView(values, {view.numel()}), stream);
  return values;
}

void from_host(std::span<float> values, const TensorView& view, StreamView stream) {
  ops::convert(HostView(values, {view.numel()}), view.reshaped({view.numel()}), stream);
}

class HostLayer final : public model::Layer {
 public:
  HostLayer(std::shared_ptr<const CustomLayer> layer,
            std::size_t inputs,
            std::vector<model::ParameterRef> parameters)
      : layer_(std::move(layer)), inputs_(inputs), parameters_(std::move(parameters)) {}
  [[nodiscard]] std::vector<model::InputUse> inputs() const override {
    return std::vector(inputs_, model::InputUse{.read_by_backward = true});
  }

  void forward(const model::LayerCall& call) const override {
    const Held held(*this, call);
    std::vector<float> output(static_cast<std::size_t>(call.output.numel()));
    call.stream.synchronize();
    layer_->forward(held.values, output);
    from_host(output, call.output, call.stream);
    call.stream.synchronize();
  }

  void backward(const model::LayerCall& call) const override {
    const Held held(*this, call);
    const std::vector<float> output = to_host(call.output_gradient, call.stream);
    call.stream.synchronize();
    CustomLayer::Gradients gradients{.output = output, .inputs = {}, .parameters = {}};
    std::vector<std::vector<float>> own = zeros_like(held);
    for (std::size_t i = 0; i < own.size(); ++i) {
      (i < inputs_ ? gradients.inputs : gradients.parameters).emplace_back(own[i]);
    }
    layer_->backward(held.values, gradients);
    for (std::size_t i = 0; i < inputs_; ++i) {
      const TensorView& target = call.input_gradients[i].values;
      if (!target.empty()) from_host(own[i], target, call.stream);
    }
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      add(own[inputs_ + i], call.gradient(parameters_[i]), call.stream);
    }
    call.stream.synchronize();
  }

 private:
  struct Held {
    Held(const HostLayer& layer, const model::LayerCall& call) {
      values.sequences = call.shape.sequences;
      values.length = call.shape.tokens;
      memory.reserve(layer.inputs_ + layer.parameters_.size());
      for (const TensorView& input : call.inputs) {
        values.inputs.emplace_back(memory.emplace_back(to_host(input, call.stream)));
      }
      for (const model::ParameterRef& parameter : layer.parameters_) {
        values.parameters.emplace_back(
            memory.emplace_back(to_host(call.value(parameter), call.stream)));
      }
    }
    std::vector<std::vector<float>> memory;
    CustomLayer::Values values;
  };

  static std::vector<std::vector<float>> zeros_like(const Held& held) {
    std::vector<std::vector<float>> zeros;
    for (const std::vector<float>& values : held.memory) zeros.emplace_back(values.size());
    return zeros;
  }

  static void add(std::vector<float>& values,
                  const model::GradientTarget& target,
                  StreamView stream) {
    if (target.values.empty()) return;
    if (target.accumulate) {
      const std::vector<float> before = to_host(target.values, stream);
      stream.synchronize();
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += before[i];
    }
    from_host(values, target.values, stream);
  }

  std::shared_ptr<const CustomLayer> layer_;
  std::size_t inputs_;
  std::vector<model::ParameterRef> parameters_;
};

}  // namespace

CustomLayer::~CustomLayer() = default;

std::unique_ptr<model::Layer> make_host_layer(std::shared_ptr<const CustomLayer> layer,
                                              std::size_t inputs,
                                              std::vector<model::ParameterRef> parameters) {
  return std::make_unique<HostLayer>(std::move(layer), inputs, std::move(parameters));
}

}  // namespace dstrain
