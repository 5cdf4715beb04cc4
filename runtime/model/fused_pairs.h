#pragma once
#include "runtime/model/layer.h"

namespace dstrain::model {

/// Two layers of which the second reads what the first writes, done as one step by an op that the
/// best device does in one pass (ops/op_table.h). The bits are those of the two by themselves.
struct FusedPair {
  struct Part {
    const Layer& layer;
    const LayerCall& call;
  };
  using Run = void (*)(const Part& first, const Part& second);
  Run forward = nullptr;   ///< null: one after the other
  Run backward = nullptr;  ///< likewise; rebuilds the value between them if it is needed
};

/// What is fused of `first` and `second`, which their classes decide.
FusedPair find_pair(const Layer& first, const Layer& second);

}  // namespace dstrain::model
