#pragma once
#include "runtime/model/layer.h"

namespace dstrain::model {

/// Two layers, of which the second reads the output of the first, run as one step by an op that the
/// best device does in one pass (ops/op_table.h). The bits are those of the two separate layers.
struct FusedPair {
  struct Part {
    const Layer& layer;
    const LayerCall& call;
  };
  using Run = void (*)(const Part& first, const Part& second);
  Run forward = nullptr;   ///< null: run one after the other
  Run backward = nullptr;  ///< likewise; rebuilds the value between them if backward needs it
};

/// Returns the fused operations for `first` and `second`, which their classes determine.
FusedPair find_pair(const Layer& first, const Layer& second);

}  // namespace dstrain::model
