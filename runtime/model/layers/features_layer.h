#pragma once
#include "runtime/model/layer.h"

namespace dstrain::model {

/// What the batch says of each position besides tokens, in the precision of the unit.
class FeaturesLayer final : public Layer {
 public:
  [[nodiscard]] std::vector<InputUse> inputs() const override { return {}; }
  [[nodiscard]] bool rebuilds() const override { return true; }
  void forward(const LayerCall& call) const override;
  void rebuild(const LayerCall& call) const override { forward(call); }
  void backward(const LayerCall&) const override {}  // a batch has no gradient
};

}  // namespace dstrain::model
