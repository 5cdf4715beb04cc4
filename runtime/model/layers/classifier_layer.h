#pragma once
#include "runtime/model/layer.h"

namespace dstrain::model {

/// Computes the logits of each row over the vocabulary, and the loss of its label: the last layer
/// of a unit that computes the loss. Its backward includes its forward, so that logits need not be
/// kept.
class ClassifierLayer final : public Layer {
 public:
  struct Sizes {
    std::int64_t channels = 0;  ///< C
    std::int64_t classes = 0;   ///< V
  };
  ClassifierLayer(ParameterRef weight, Sizes sizes, const UnitOptions& options)
      : weight_(weight), sizes_(sizes), options_(options) {}
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
  Sizes sizes_;
  UnitOptions options_;
};

}  // namespace dstrain::model
