#pragma once
#include "runtime/model/layer.h"

namespace dstrain::model {

/// A loss that is a mean over the features of each row: of their squared differences to the batch's
/// targets, or of the values themselves. Its backward includes its forward.
class MeanLossLayer final : public Layer {
 public:
  enum class Terms : std::int8_t { squared_errors, values };
  MeanLossLayer(Terms terms, float factor) : terms_(terms), factor_(factor) {}
  [[nodiscard]] std::vector<InputUse> inputs() const override {
    return {{.read_by_backward = true, .gradient_over_input = true}};
  }
  [[nodiscard]] Bytes forward_workspace(BatchShape shape) const override;
  [[nodiscard]] Bytes backward_workspace(BatchShape shape) const override {
    return forward_workspace(shape);
  }
  /// Adds to the loss of the unit's call; if that has logits, writes the values there instead.
  void forward(const LayerCall& call) const override;
  void backward(const LayerCall& call) const override;

 private:
  Terms terms_;
  float factor_;
};

}  // namespace dstrain::model
