#pragma once
#include "runtime/model/layer.h"

namespace dstrain::model {

/// output = gelu(input), by the tanh approximation. Rebuilds its output.
class GeluLayer final : public Layer {
 public:
  [[nodiscard]] std::vector<InputUse> inputs() const override {
    return {{.read_by_backward = true, .gradient_over_output = true}};
  }
  [[nodiscard]] bool rebuilds() const override { return true; }
  void forward(const LayerCall& call) const override;
  void rebuild(const LayerCall& call) const override { forward(call); }
  void backward(const LayerCall& call) const override;
};

}  // namespace dstrain::model
