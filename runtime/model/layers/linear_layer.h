#pragma once
#include "runtime/model/layer.h"
#include "runtime/model/layers/linear.h"

namespace dstrain::model {

/// output = input weight + bias; the weight may be in tiles (layers/linear.h).
class LinearLayer final : public Layer {
 public:
  struct Parameters {
    ParameterRef weight;  ///< (K, N)
    ParameterRef bias;    ///< (N)
  };
  struct Sizes {
    std::int64_t inputs = 0;   ///< K
    std::int64_t outputs = 0;  ///< N
  };
  LinearLayer(Parameters parameters, Sizes sizes, const UnitOptions& options)
      : parameters_(parameters), sizes_(sizes), options_(options) {}
  [[nodiscard]] std::vector<InputUse> inputs() const override {
    return {{.read_by_backward = true, .gradient_over_input = true}};
  }
  [[nodiscard]] Bytes forward_workspace(BatchShape shape) const override {
    return linear_workspace({shape.rows(), sizes_.inputs, sizes_.outputs}, options_);
  }
  [[nodiscard]] Bytes backward_workspace(BatchShape shape) const override {
    return forward_workspace(shape);
  }
  void forward(const LayerCall& call) const override { forward(call, {}); }
  void backward(const LayerCall& call) const override;

  /// Also active = gelu(output).
  void forward(const LayerCall& call, const TensorView& active) const;
  /// Of a layer whose input is gelu(inner): writes that input to call.inputs[0] and the gradient of
  /// `inner` to call.input_gradients[0].
  void backward_from(const LayerCall& call, const TensorView& inner) const;

 private:
  [[nodiscard]] LinearWeight weight(const LayerCall& call) const {
    return weight_of(call.unit, call.spec, parameters_.weight.index);
  }

  Parameters parameters_;
  Sizes sizes_;
  UnitOptions options_;
};

}  // namespace dstrain::model
