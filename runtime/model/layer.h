#pragma once
#include <vector>

#include "runtime/base/error.h"
#include "runtime/model/unit.h"

namespace dstrain::model {

/// The properties of an input of a layer. They determine the memory of a unit.
struct InputUse {
  bool read_by_backward = false;
  bool replaced_by_output = false;  ///< forward may write the output to its memory
  // The gradient, which backward overwrites if it has memory for it:
  bool gradient_is_outputs = false;   ///< equals that of the output; backward writes none
  bool gradient_adds = false;         ///< can be added to another one: InputGradient::residual
  bool gradient_over_input = false;   ///< may be written over the input
  bool gradient_over_output = false;  ///< may be written over the output's gradient
};

/// The target of the gradient of an input: values = [values +] [residual +] gradient.
struct InputGradient {
  TensorView values;
  TensorView residual;      ///< empty, or may be `values`; only with InputUse::gradient_adds
  bool accumulate = false;  ///< likewise
};

/// A parameter of a unit that a layer uses.
struct ParameterRef {
  std::size_t index = 0;  ///< index into the parameters that the unit owns, or borrows
  bool borrowed = false;
};

/// The arguments of a layer for one forward, rebuild or backward. Values and gradients are dense
/// (B, T, features) of `shape`, the shape of the layer's output on its axis. Those that the layer
/// does not use are empty.
struct LayerCall {
  const UnitCall& unit;
  BatchShape shape;
  const UnitSpec& spec;
  StreamView stream;
  std::vector<TensorView> inputs{};
  TensorView output{};
  std::vector<TensorView> kept{};  ///< f32, with the shapes of Layer::kept()
  /// Of the unit's cache, in the unit's dtype, with the shapes of Layer::cached(); empty: no cache.
  std::vector<TensorView> cached{};
  TensorView workspace{};  ///< u8
  TensorView output_gradient{};
  std::vector<InputGradient> input_gradients{};

  [[nodiscard]] std::size_t position(const ParameterRef& parameter) const {
    return parameter.index + (parameter.borrowed ? spec.parameters.size() : 0);
  }
  [[nodiscard]] const TensorView& value(const ParameterRef& parameter) const {
    return unit.parameters[position(parameter)];
  }
  [[nodiscard]] const GradientTarget& gradient(const ParameterRef& parameter) const {
    return unit.parameter_gradients[position(parameter)];
  }
};

/// A tensor of a layer in the unit's cache: (slots, R, columns), in the unit's dtype.
struct CachedSpec {
  Shape shape;
  Axis axis = Axis::target;  ///< of its rows
};

/// One step of a unit, from some values to one, with a handwritten backward. It knows its
/// parameters by their index in the unit, and keeps nothing between calls. Work goes to the call's
/// stream.
class Layer {
 public:
  virtual ~Layer() = default;
  /// One entry per input.
  [[nodiscard]] virtual std::vector<InputUse> inputs() const = 0;
  [[nodiscard]] virtual bool backward_reads_output() const { return false; }
  /// Whether rebuild() recomputes the output, bit for bit, from the inputs and the kept tensors.
  /// Then the output is not saved for layers that read it in backward.
  [[nodiscard]] virtual bool rebuilds() const { return false; }
  // `shape` is that of the output, or of the inputs if there is no output.
  /// The shapes of tensors, other than values, that are kept from forward to backward. Their number
  /// is constant.
  [[nodiscard]] virtual std::vector<Shape> kept(BatchShape) const { return {}; }
  /// The tensors that are kept from one forward to later ones; see CacheCall.
  [[nodiscard]] virtual std::vector<CachedSpec> cached(const CacheShape&) const { return {}; }
  [[nodiscard]] virtual Bytes forward_workspace(BatchShape) const { return 0; }
  [[nodiscard]] virtual Bytes backward_workspace(BatchShape) const { return 0; }

  virtual void forward(const LayerCall& call) const = 0;
  virtual void rebuild(const LayerCall&) const { fail(ErrorCode::internal, "nothing to rebuild"); }
  virtual void backward(const LayerCall& call) const = 0;
};

}  // namespace dstrain::model
