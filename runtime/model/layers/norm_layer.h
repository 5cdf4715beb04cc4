#pragma once
#include "runtime/model/layer.h"
#include "runtime/ops/layer_norm.h"

namespace dstrain::model {

/// Layer normalisation of each row. Keeps two statistics per row; rebuilds its output from them.
class NormLayer final : public Layer {
 public:
  struct Parameters {
    ParameterRef weight;  ///< (C)
    ParameterRef bias;    ///< (C)
  };
  NormLayer(Parameters parameters, float eps) : parameters_(parameters), eps_(eps) {}
  [[nodiscard]] std::vector<InputUse> inputs() const override {
    return {{.read_by_backward = true, .gradient_adds = true}};
  }
  [[nodiscard]] bool rebuilds() const override { return true; }
  [[nodiscard]] std::vector<Shape> kept(BatchShape shape) const override {
    return {{shape.rows()}, {shape.rows()}};
  }
  void forward(const LayerCall& call) const override;
  void rebuild(const LayerCall& call) const override;
  void backward(const LayerCall& call) const override;

  /// What forward and rebuild, and what backward give their ops.
  [[nodiscard]] ops::LayerNormArgs forward_args(const LayerCall& call) const;
  [[nodiscard]] ops::LayerNormBackwardArgs backward_args(const LayerCall& call) const;

 private:
  Parameters parameters_;
  float eps_;
};

}  // namespace dstrain::model
