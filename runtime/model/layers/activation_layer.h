#pragma once
#include "runtime/model/layer.h"
#include "runtime/ops/activation.h"

namespace dstrain::model {

/// Computes output = activation(input) or, for a gated MLP, activation(gate) factor. Rebuilds its
/// output.
class ActivationLayer final : public Layer {
 public:
  enum class Form : std::int8_t {
    plain,
    gated,   ///< two inputs: the gate, then the factor
    packed,  ///< one input, (B, T, 2 F): the gate, then the factor
  };
  ActivationLayer(ops::Activation kind, Form form) : kind_(kind), form_(form) {}
  [[nodiscard]] std::vector<InputUse> inputs() const override;
  [[nodiscard]] bool rebuilds() const override { return true; }
  void forward(const LayerCall& call) const override;
  void rebuild(const LayerCall& call) const override { forward(call); }
  void backward(const LayerCall& call) const override { backward(call, {}); }

  /// Also rebuilds `output`, if it is not empty.
  void backward(const LayerCall& call, const TensorView& output) const;
  [[nodiscard]] ops::Activation kind() const { return kind_; }
  [[nodiscard]] bool gated() const { return form_ != Form::plain; }

 private:
  struct Parts;
  /// Splits inputs, or their gradients.
  [[nodiscard]] Parts parts(std::span<const TensorView> tensors) const;

  ops::Activation kind_;
  Form form_;
};

}  // namespace dstrain::model
