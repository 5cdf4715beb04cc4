#pragma once
#include "runtime/comm/call.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::comm {

/// The rank that does an operation.
struct CallPlace {
  int rank = 0;
  int size = 1;
};

/// What an operation on these views is called; its arguments keep to what Communicator asks of
/// them, save where the memory lies. Throw Error{internal} where they do not.
Call all_gather_call(const TensorView& shard, const TensorView& whole, CallPlace place);
Call reduce_scatter_call(const TensorView& whole, const TensorView& shard, CallPlace place);
Call all_reduce_call(const TensorView& values);
Call all_to_all_call(const TensorView& parts, const TensorView& received, CallPlace place);
Call broadcast_call(const TensorView& values, int root, CallPlace place);
Call send_call(const TensorView& values, int target, CallPlace place);
Call receive_call(const TensorView& values, int source, CallPlace place);

}  // namespace dstrain::comm
