#pragma once
#include "runtime/model/layer.h"

namespace dstrain::model {

/// Computes output = factor input.
class ScaleLayer final : public Layer {
 public:
  explicit ScaleLayer(float factor) : factor_(factor) {}
  [[nodiscard]] std::vector<InputUse> inputs() const override {
    return {{.replaced_by_output = true, .gradient_over_output = true}};
  }
  [[nodiscard]] bool rebuilds() const override { return true; }
  void forward(const LayerCall& call) const override;
  void rebuild(const LayerCall& call) const override { forward(call); }
  void backward(const LayerCall& call) const override;

 private:
  float factor_;
};

}  // namespace dstrain::model
