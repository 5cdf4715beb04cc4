#pragma once
#include <optional>

#include "runtime/model/layer.h"
#include "runtime/ops/layer_norm.h"

namespace dstrain::model {

/// Normalises each row, or each group of C features in it, such as a head. Keeps its statistics and
/// rebuilds its output from them.
class NormLayer final : public Layer {
 public:
  enum class Kind : std::int8_t { layer_norm, rms_norm };  ///< rms_norm has no mean
  struct Parameters {
    ParameterRef weight;                 ///< (C)
    std::optional<ParameterRef> bias{};  ///< (C)
  };
  struct Options {
    Kind kind = Kind::layer_norm;
    float eps = 0;
    std::int64_t groups = 1;
  };
  NormLayer(Parameters parameters, Options options) : parameters_(parameters), options_(options) {}
  [[nodiscard]] std::vector<InputUse> inputs() const override {
    return {{.read_by_backward = true, .gradient_adds = true}};
  }
  [[nodiscard]] bool rebuilds() const override { return true; }
  [[nodiscard]] std::vector<Shape> kept(BatchShape shape) const override {
    const std::int64_t rows = shape.rows() * options_.groups;
    if (options_.kind == Kind::rms_norm) return {{rows}};
    return {{rows}, {rows}};
  }
  void forward(const LayerCall& call) const override;
  void rebuild(const LayerCall& call) const override;
  void backward(const LayerCall& call) const override;

  /// Return the arguments of the ops of forward and rebuild, and of backward.
  [[nodiscard]] ops::LayerNormArgs forward_args(const LayerCall& call) const;
  [[nodiscard]] ops::LayerNormBackwardArgs backward_args(const LayerCall& call) const;

  [[nodiscard]] std::int64_t groups() const { return options_.groups; }

 private:
  [[nodiscard]] TensorView rows(const TensorView& view) const;

  Parameters parameters_;
  Options options_;
};

}  // namespace dstrain::model
