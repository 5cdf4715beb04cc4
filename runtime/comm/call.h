#pragma once
#include <cstdint>
#include <string>

#include "runtime/tensor/dtype.h"

namespace dstrain::comm {

enum class Operation : std::uint8_t {
  none,
  join,
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all,
  broadcast,
  send,
  receive,
  split,
  gather,  ///< from here on: operations of a ControlGroup
  gather_texts,
  barrier,
};

/// A rank of a group of `size` ranks.
struct GroupRank {
  int rank = 0;
  int size = 1;
};

/// The operation that a rank announces. Equal on all ranks of a collective. Plain data, in shared
/// memory. `numel` counts the elements that a rank passes in: the shard for all_gather, the whole
/// for the others.
struct Call {
  Operation operation = Operation::none;
  DType dtype = DType::f32;
  std::int32_t peer = 0;  ///< the root of a broadcast, the other end of a send or receive
  std::int64_t numel = 0;
  friend constexpr bool operator==(const Call&, const Call&) = default;
};

/// Whether the operation uses `peer`.
constexpr bool has_peer(Operation operation) {
  return operation == Operation::broadcast || operation == Operation::send ||
         operation == Operation::receive;
}
/// Returns "all_reduce".
const char* name_of(Operation operation);
/// Returns "all_reduce of 12 f32", "broadcast of 3 i64 from rank 1", "barrier".
std::string to_string(const Call& call);

}  // namespace dstrain::comm
