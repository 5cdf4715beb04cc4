#pragma once
#include "runtime/model/layer.h"
#include "runtime/ops/dropout.h"

namespace dstrain::model {

/// A dropout in a unit; each has its own random numbers.
struct DropoutPlace {
  float rate = 0;
  std::uint32_t number = 0;  ///< within the unit
  /// Returns its mask in a call with `source`; inactive outside training.
  [[nodiscard]] ops::DropoutSite site(const DropoutSource& source) const {
    return {.rate = source.training ? rate : 0.0F,
            .seed = ops::dropout_site_seed(source.seed, source.unit, number),
            .counter = source.counter};
  }
};

/// output = input times the mask.
class DropoutLayer final : public Layer {
 public:
  explicit DropoutLayer(DropoutPlace place) : place_(place) {}
  [[nodiscard]] std::vector<InputUse> inputs() const override {
    return {{.replaced_by_output = true, .gradient_over_output = true}};
  }
  void forward(const LayerCall& call) const override;
  void backward(const LayerCall& call) const override;

 private:
  DropoutPlace place_;
};

/// Computes output = residual + input times the mask: adds a branch to the residual stream.
class AddLayer final : public Layer {
 public:
  explicit AddLayer(DropoutPlace place) : place_(place) {}
  /// The inputs are the residual, then the branch.
  [[nodiscard]] std::vector<InputUse> inputs() const override;
  void forward(const LayerCall& call) const override;
  void backward(const LayerCall& call) const override;

  [[nodiscard]] const DropoutPlace& place() const { return place_; }
  /// Returns the arguments of forward's op.
  [[nodiscard]] ops::DropoutArgs forward_args(const LayerCall& call) const;

 private:
  DropoutPlace place_;
};

}  // namespace dstrain::model
