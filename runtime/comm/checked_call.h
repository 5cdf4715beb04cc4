#pragma once
#include "runtime/comm/call.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::comm {

/// Return the Call of an operation on these views. Throw Error{internal} if the arguments break the
/// rules of Communicator; where the memory is located is not checked.
Call all_gather_call(const TensorView& shard, const TensorView& whole, GroupRank own);
Call reduce_scatter_call(const TensorView& whole, const TensorView& shard, GroupRank own);
Call all_reduce_call(const TensorView& values);
Call all_to_all_call(const TensorView& parts, const TensorView& received, GroupRank own);
Call broadcast_call(const TensorView& values, int root, GroupRank own);
Call send_call(const TensorView& values, int target, GroupRank own);
Call receive_call(const TensorView& values, int source, GroupRank own);

}  // namespace dstrain::comm
