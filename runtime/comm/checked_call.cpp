#include "runtime/comm/checked_call.h"

#include "runtime/base/error.h"

namespace dstrain::comm {
namespace {

Call call_of(Operation operation, const TensorView& values, int peer = 0) {
  const Call call{operation, values.dtype(), peer, values.numel()};
  DSTRAIN_CHECK(values.dense(), "{}: the rows are strided", to_string(call));
  return call;
}

void check_summable(const Call& call) {
  const bool integer = call.dtype == DType::i32 || call.dtype == DType::i64;
  DSTRAIN_CHECK(call.dtype == DType::f32 || is_half(call.dtype) || integer,
                "{}: sums are of f32, bf16, f16, i32 and i64", to_string(call));
}

void check_parts(const Call& call, const TensorView& whole, const TensorView& shard, int size) {
  DSTRAIN_CHECK(whole.dtype() == shard.dtype(), "{}: two dtypes", to_string(call));
  DSTRAIN_CHECK(whole.numel() == shard.numel() * size, "{}: {} elements in {} shards of {}",
                to_string(call), whole.numel(), size, shard.numel());
}

void check_other(const Call& call, const TensorView& other) {
  DSTRAIN_CHECK(other.dense(), "{}: the rows are strided", to_string(call));
}

void check_peer(int peer, GroupRank own) {
  DSTRAIN_CHECK(peer >= 0 && peer < own.size, "rank {} of {}", peer, own.size);
}

}  // namespace

Call all_gather_call(const TensorView& shard, const TensorView& whole, GroupRank own) {
  const Call call = call_of(Operation::all_gather, shard);
  check_other(call, whole);
  check_parts(call, whole, shard, own.size);
  return call;
}

Call reduce_scatter_call(const TensorView& whole, const TensorView& shard, GroupRank own) {
  const Call call = call_of(Operation::reduce_scatter, whole);
  check_other(call, shard);
  check_parts(call, whole, shard, own.size);
  check_summable(call);
  return call;
}

Call all_reduce_call(const TensorView& values) {
  const Call call = call_of(Operation::all_reduce, values);
  check_summable(call);
  return call;
}

Call all_to_all_call(const TensorView& parts, const TensorView& received, GroupRank own) {
  const Call call = call_of(Operation::all_to_all, parts);
  check_other(call, received);
  DSTRAIN_CHECK(parts.dtype() == received.dtype(), "{}: two dtypes", to_string(call));
  DSTRAIN_CHECK(parts.numel() == received.numel() && parts.numel() % own.size == 0,
                "{}: {} elements come back, in {} parts", to_string(call), received.numel(),
                own.size);
  return call;
}

Call broadcast_call(const TensorView& values, int root, GroupRank own) {
  check_peer(root, own);
  return call_of(Operation::broadcast, values, root);
}

Call send_call(const TensorView& values, int target, GroupRank own) {
  check_peer(target, own);
  DSTRAIN_CHECK(target != own.rank, "rank {} sends to itself", own.rank);
  return call_of(Operation::send, values, target);
}

Call receive_call(const TensorView& values, int source, GroupRank own) {
  check_peer(source, own);
  DSTRAIN_CHECK(source != own.rank, "rank {} receives from itself", own.rank);
  return call_of(Operation::receive, values, source);
}

}  // namespace dstrain::comm
