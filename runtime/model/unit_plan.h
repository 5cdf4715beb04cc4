#pragma once
#include <vector>

#include "runtime/model/fused_pairs.h"
#include "runtime/model/unit_record.h"

namespace dstrain::model {

/// Memory that steps of a unit use: a value or its gradient, a tensor that a layer keeps, or
/// workspace.
struct UnitBuffer {
  enum class Kind : std::int8_t {
    input,
    output,
    input_gradient,
    output_gradient,
    saved,
    workspace,
  };
  enum class Content : std::int8_t { value, kept, forward_workspace, backward_workspace };
  Kind kind = Kind::workspace;
  Content content = Content::value;
  int owner = 0;  ///< the value that it has room for, or the layer
  int index = 0;  ///< the index of the unit's input or output, or of the kept tensor
  int first = 0;  ///< for workspace: the first and the last step that needs it
  int last = 0;
};

/// The buffers that one layer of a step uses, as indices, or none.
struct LayerUse {
  static constexpr int none = -1;
  struct Gradient {
    int values = none;  ///< none: the layer does not write it
    int residual = none;
  };
  int layer = 0;
  std::vector<int> inputs{};
  int output = none;
  std::vector<int> kept{};
  int workspace = none;
  int output_gradient = none;
  std::vector<Gradient> input_gradients{};
};

/// One operation of a unit: run a layer or a fused pair, or move a gradient.
struct Step {
  enum class Kind : std::int8_t {
    forward,
    rebuild,
    backward,
    add,    ///< target += source
    store,  ///< target = [target +] source, as InputGradient::accumulate of the unit says
  };
  Kind kind = Kind::forward;
  std::vector<LayerUse> layers{};  ///< one, or the two of a fused pair
  FusedPair::Run pair = nullptr;   ///< set for two
  int source = LayerUse::none;
  int target = LayerUse::none;
};

/// The steps of a unit, and the memory that each of them uses, for any batch shape. Derived from
/// the properties of the layers:
///  - A value is saved if backward reads it, unless its layer rebuilds it then. Others are in the
///    workspace while they are read.
///  - A gradient is written over a value or another gradient that is not read any more, if its
///    layer allows it. The gradients of the readers of a value are added up.
///  - Adjacent layers that are a fused pair (fused_pairs.h) are one step.
/// A unit that computes the loss does forward and backward together: it saves and rebuilds nothing.
struct UnitPlan {
  std::vector<UnitBuffer> buffers;
  std::vector<Step> steps;
  int forward_steps = 0;  ///< the first steps; the others are those of backward
};
/// Throws Error{internal} if values do not flow, or if backward needs an output of the unit.
UnitPlan plan_unit(const UnitRecord& record);

/// The byte offsets of the buffers in the unit's saved memory and workspace, for a batch shape.
struct Placement {
  std::vector<Bytes> offsets;  ///< of saved and workspace buffers
  UnitMemory memory;
};
Placement place_buffers(const UnitRecord& record, const UnitPlan& plan, BatchShape shape);

/// Returns dense (B, T, features) for a value, with the T of its axis, else the shape from the
/// layer.
Shape shape_of(const UnitRecord& record, const UnitBuffer& buffer, BatchShape shape);

}  // namespace dstrain::model
