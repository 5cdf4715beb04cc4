#pragma once
#include "runtime/model/layer.h"

namespace dstrain::model {

/// Computes the logits of each row over the vocabulary, and the loss of its label. Its backward
/// includes its forward, so that logits need not be kept.
class ClassifierLayer final : public Layer {
 public:
  struct Options {
    std::int64_t channels = 0;  ///< C
    std::int64_t classes = 0;   ///< V
    float factor = 1;           ///< of the loss
  };
  ClassifierLayer(ParameterRef weight, Options options, const UnitOptions& unit)
      : weight_(weight), options_(options), unit_(unit) {}
  [[nodiscard]] std::vector<InputUse> inputs() const override {
    return {{.read_by_backward = true, .gradient_over_input = true}};
  }
  [[nodiscard]] Bytes forward_workspace(BatchShape shape) const override;
  [[nodiscard]] Bytes backward_workspace(BatchShape shape) const override {
    return forward_workspace(shape);
  }
  /// Adds to the loss of the unit's call; if that has logits, writes them instead.
  void forward(const LayerCall& call) const override;
  void backward(const LayerCall& call) const override;

 private:
  ParameterRef weight_;  ///< (V, C)
  Options options_;
  UnitOptions unit_;
};

}  // namespace dstrain::model
