#pragma once
#include <vector>

#include "runtime/model/fused_pairs.h"
#include "runtime/model/unit_record.h"

namespace dstrain::model {

/// Memory that steps of a unit use: a value or its gradient, what a layer keeps, or workspace.
struct Slot {
  enum class Place : std::int8_t {
    input,
    output,
    input_gradient,
    output_gradient,
    saved,
    workspace,
  };
  enum class Content : std::int8_t { value, kept, forward_workspace, backward_workspace };
  Place place = Place::workspace;
  Content content = Content::value;
  int owner = 0;  ///< value that it has room for, else the layer
  int index = 0;  ///< of inputs and outputs, which one of the unit's; of what is kept, which one
  int first = 0;  ///< of workspace: the steps from which and to which it is needed, inclusive
  int last = 0;
};

/// What one layer of a step uses: indices of slots, or none.
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

/// What is done at once.
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
  FusedPair::Run pair = nullptr;   ///< of two
  int source = LayerUse::none;
  int target = LayerUse::none;
};

/// The steps of a unit, and the memory that each of them uses, for any shape of a batch. Follows
/// from what the layers say of themselves:
///  - A value is saved when backward reads it, unless its layer rebuilds it then; others live in
///    the workspace for as long as they are read.
///  - A gradient takes the place of a value or of another gradient that nobody reads any more,
///    where its layer allows that. The gradients of the readers of a value are added up.
///  - Neighbours that are a fused pair (fused_pairs.h) are one step.
/// A unit that computes the loss does forward and backward in one go: it saves and rebuilds
/// nothing.
struct UnitPlan {
  std::vector<Slot> slots;
  std::vector<Step> steps;
  int forward_steps = 0;  ///< the first ones; the others are those of backward
};
/// Throws Error{internal} where values do not flow, or where backward needs an output of the unit.
UnitPlan plan_unit(const UnitRecord& record);

/// Where the slots lie in the unit's saved memory and workspace, in bytes, for a shape of a batch.
struct Placement {
  std::vector<Bytes> offsets;  ///< of slots that are saved or workspace
  UnitMemory memory;
};
Placement place_slots(const UnitRecord& record, const UnitPlan& plan, BatchShape shape);

/// Dense (B, T, features) for a value, T that of its axis, else as the layer says.
Shape shape_of(const UnitRecord& record, const Slot& slot, BatchShape shape);

}  // namespace dstrain::model
