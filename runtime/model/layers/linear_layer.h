#pragma once
#include <optional>

#include "runtime/model/layer.h"
#include "runtime/ops/activation.h"

namespace dstrain::model {

/// The memory layout of a weight with K inputs and N outputs.
enum class WeightLayout : std::int8_t {
  inputs_first,   ///< (K, N): Hugging Face's Conv1D
  outputs_first,  ///< (N, K): torch.nn.Linear
};

/// Computes output (..., N) = input (..., K) weight + bias. The weight is whole, or in tiles of
/// rows, as in DeepSpeed's TiledLinear: forward uses them in order, backward in reverse order. Sums
/// over tiles, of outputs or of input gradients, are in f32 and rounded once.
class LinearLayer final : public Layer {
 public:
  struct Parameters {
    ParameterRef weight;
    std::optional<ParameterRef> bias{};  ///< (N)
  };
  struct Sizes {
    std::int64_t inputs = 0;   ///< K
    std::int64_t outputs = 0;  ///< N
    WeightLayout layout = WeightLayout::inputs_first;
    [[nodiscard]] Shape weight() const {
      return layout == WeightLayout::inputs_first ? Shape{inputs, outputs} : Shape{outputs, inputs};
    }
  };
  LinearLayer(Parameters parameters, Sizes sizes, const UnitOptions& options)
      : parameters_(parameters), sizes_(sizes), options_(options) {}

  [[nodiscard]] std::vector<InputUse> inputs() const override {
    return {{.read_by_backward = true, .gradient_over_input = true}};
  }
  /// Workspace of products and, with tiles, the data of one tile and an f32 sum.
  [[nodiscard]] Bytes forward_workspace(BatchShape shape) const override;
  [[nodiscard]] Bytes backward_workspace(BatchShape shape) const override {
    return forward_workspace(shape);
  }
  void forward(const LayerCall& call) const override;
  void backward(const LayerCall& call) const override;

  /// forward(), and active = activation(output).
  void forward(const LayerCall& call, ops::Activation kind, const TensorView& active) const;

  // The parts of backward, for a layer whose input is rebuilt in between.
  void backward_input(const LayerCall& call) const;
  /// For an input that is activation(inner): writes the gradient of `inner` instead, and the input.
  void backward_input(const LayerCall& call, ops::Activation kind, const TensorView& inner) const;
  void backward_weight(const LayerCall& call) const;

 private:
  Parameters parameters_;
  Sizes sizes_;
  UnitOptions options_;
};

/// Splits a parameter with `rows` rows into at most `splits` tiles of equal numbers of rows; the
/// last may be shorter.
std::vector<ParameterTile> split_rows(std::size_t parameter,
                                      std::int64_t rows,
                                      std::int64_t splits);

}  // namespace dstrain::model
