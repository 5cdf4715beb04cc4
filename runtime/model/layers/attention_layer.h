#pragma once
#include "runtime/model/layer.h"
#include "runtime/model/layers/dropout_layer.h"
#include "runtime/ops/attention.h"

namespace dstrain::model {

/// Causal self-attention over packed projections (B, T, 3C). Keeps the log-sum-exp of each query;
/// backward reads its output.
class AttentionLayer final : public Layer {
 public:
  struct Sizes {
    std::int64_t heads = 0;     ///< H
    std::int64_t channels = 0;  ///< C
  };
  AttentionLayer(Sizes sizes, DropoutPlace place, DeviceKind device)
      : sizes_(sizes), place_(place), device_(device) {}
  [[nodiscard]] std::vector<InputUse> inputs() const override {
    return {{.read_by_backward = true}};
  }
  [[nodiscard]] bool backward_reads_output() const override { return true; }
  [[nodiscard]] std::vector<Shape> kept(BatchShape shape) const override {
    return {{shape.sequences, sizes_.heads, shape.tokens}};
  }
  [[nodiscard]] Bytes forward_workspace(BatchShape shape) const override {
    return ops::attention_forward_workspace(sizes(shape), device_);
  }
  [[nodiscard]] Bytes backward_workspace(BatchShape shape) const override {
    return ops::attention_backward_workspace(sizes(shape), device_);
  }
  void forward(const LayerCall& call) const override;
  void backward(const LayerCall& call) const override;

 private:
  [[nodiscard]] ops::AttentionSizes sizes(BatchShape shape) const {
    return {shape.sequences, shape.tokens, sizes_.heads, sizes_.channels};
  }
  Sizes sizes_;
  DropoutPlace place_;
  DeviceKind device_;
};

}  // namespace dstrain::model
