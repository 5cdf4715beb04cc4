#pragma once
#include <vector>

#include "runtime/base/error.h"
#include "runtime/model/unit.h"

namespace dstrain::model {

/// How a layer treats one of its inputs. The memory of a unit follows from these.
struct InputUse {
  bool read_by_backward = false;
  bool replaced_by_output = false;  ///< forward may write the output in its place
  // Its gradient, which backward overwrites where it is given memory for it:
  bool gradient_is_outputs = false;   ///< is that of the output, unchanged; backward writes none
  bool gradient_adds = false;         ///< may be added to another one: InputGradient::residual
  bool gradient_over_input = false;   ///< may take the place of the input
  bool gradient_over_output = false;  ///< may take the place of the output's gradient
};

/// Where the gradient of an input goes: values = [values +] [residual +] gradient.
struct InputGradient {
  TensorView values;
  TensorView residual;      ///< or empty; may be `values`. Only with InputUse::gradient_adds
  bool accumulate = false;  ///< likewise
};

/// A parameter of a unit that a layer uses.
struct ParameterRef {
  std::size_t index = 0;  ///< among those that the unit owns, or among those that it borrows
  bool borrowed = false;
};

/// All that a layer gets for one forward, rebuild or backward. Values and gradients are dense
/// (B, T, features) of `shape`, which is that of the layer's output, and of its own axis. Those
/// that the layer has not asked for are empty.
struct LayerCall {
  const UnitCall& unit;
  BatchShape shape;
  const UnitSpec& spec;
  StreamView stream;
  std::vector<TensorView> inputs{};
  TensorView output{};
  std::vector<TensorView> kept{};  ///< f32, as Layer::kept() says
  TensorView workspace{};          ///< u8
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

/// One step of a unit's composition, with a backward written by hand: from some values to one. It
/// knows the parameters that it uses by their place in the unit, and keeps nothing between calls.
/// Work goes to the call's stream.
class Layer {
 public:
  virtual ~Layer() = default;
  /// One for each input.
  [[nodiscard]] virtual std::vector<InputUse> inputs() const = 0;
  [[nodiscard]] virtual bool backward_reads_output() const { return false; }
  /// Whether rebuild() gives the output again, bit for bit, from the inputs and what was kept: then
  /// the output is not saved for those who read it in backward.
  [[nodiscard]] virtual bool rebuilds() const { return false; }
  // Shapes are that of the output, or of what is read where there is none.
  /// What is kept from forward to backward beside values; always as many.
  [[nodiscard]] virtual std::vector<Shape> kept(BatchShape) const { return {}; }
  [[nodiscard]] virtual Bytes forward_workspace(BatchShape) const { return 0; }
  [[nodiscard]] virtual Bytes backward_workspace(BatchShape) const { return 0; }

  virtual void forward(const LayerCall& call) const = 0;
  virtual void rebuild(const LayerCall&) const { fail(ErrorCode::internal, "nothing to rebuild"); }
  virtual void backward(const LayerCall& call) const = 0;
};

}  // namespace dstrain::model
