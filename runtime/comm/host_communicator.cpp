#include "runtime/comm/host_communicator.h"

#include "runtime/comm/host_sum.h"
#include "runtime/device/cpu_stream_access.h"
#include "runtime/tensor/host_access.h"

namespace dstrain::comm {
namespace {

Call call_of(Operation operation, const TensorView& values, int peer = 0) {
  return {operation, values.dtype(), peer, values.numel()};
}

HostView checked(const Call& call, const TensorView& view) {
  DSTRAIN_CHECK(view.dense(), "{}: the rows are strided", to_string(call));
  DSTRAIN_CHECK(shares_host_memory(view.device().kind), "{}: not in host memory", to_string(call));
  DSTRAIN_CHECK(!view.empty() || view.numel() == 0, "{}: no memory", to_string(call));
  return host_access(view);
}

bool is_integer(const Call& call) {
  return call.dtype == DType::i32 || call.dtype == DType::i64;
}

void check_summable(const Call& call) {
  DSTRAIN_CHECK(call.dtype == DType::f32 || is_half(call.dtype) || is_integer(call),
                "{}: sums are of f32, bf16, f16, i32 and i64", to_string(call));
}

void check_parts(const Call& call, const TensorView& whole, const TensorView& shard, int size) {
  DSTRAIN_CHECK(whole.dtype() == shard.dtype(), "{}: two dtypes", to_string(call));
  DSTRAIN_CHECK(whole.numel() == shard.numel() * size, "{}: {} elements in {} shards of {}",
                to_string(call), whole.numel(), size, shard.numel());
}

}  // namespace

template <class Run>
void HostCommunicator::launch(const Call& call, StreamView stream, Run run) {
  cpu_stream(stream).launch([this, call, run] {
    if (observer() != nullptr) observer()->begin(call);
    run();
    if (observer() != nullptr) observer()->end(call);
  });
}

void HostCommunicator::check_peer(int peer) const {
  DSTRAIN_CHECK(peer >= 0 && peer < size_, "rank {} of {}", peer, size_);
}

void HostCommunicator::all_gather(TensorView shard, TensorView whole, StreamView stream) {
  const Call call = call_of(Operation::all_gather, shard);
  check_parts(call, whole, shard, size_);
  launch(call, stream, [this, call, own = checked(call, shard), all = checked(call, whole)] {
    run_all_gather(call, own, all);
  });
}

void HostCommunicator::reduce_scatter(TensorView whole, TensorView shard, StreamView stream) {
  const Call call = call_of(Operation::reduce_scatter, whole);
  check_parts(call, whole, shard, size_);
  check_summable(call);
  launch(call, stream, [this, call, own = checked(call, shard), all = checked(call, whole)] {
    is_integer(call) ? reduce_scatter_integers(call, all, own) : run_reduce_scatter(call, all, own);
  });
}

void HostCommunicator::all_reduce(TensorView values, StreamView stream) {
  const Call call = call_of(Operation::all_reduce, values);
  check_summable(call);
  launch(call, stream, [this, call, memory = checked(call, values)] {
    is_integer(call) ? all_reduce_integers(call, memory) : run_all_reduce(call, memory);
  });
}

void HostCommunicator::all_to_all(TensorView parts, TensorView received, StreamView stream) {
  const Call call = call_of(Operation::all_to_all, parts);
  DSTRAIN_CHECK(parts.dtype() == received.dtype(), "{}: two dtypes", to_string(call));
  DSTRAIN_CHECK(parts.numel() == received.numel() && parts.numel() % size_ == 0,
                "{}: {} elements come back, in {} parts", to_string(call), received.numel(), size_);
  launch(call, stream, [this, call, from = checked(call, parts), to = checked(call, received)] {
    run_all_to_all(call, from, to);
  });
}

/// Every rank gets the parts of its own shard and adds them up: as few bytes as any sum.
void HostCommunicator::reduce_scatter_integers(const Call& call, HostView whole, HostView shard) {
  std::vector<std::byte> received(static_cast<std::size_t>(whole.bytes()));
  run_all_to_all(call, whole, {received.data(), call.dtype, whole.shape()});
  add_integers(received.data(), size_, shard);
}

/// Of as many elements as the ranks can share out, the last filled up.
void HostCommunicator::all_reduce_integers(const Call& call, HostView values) {
  const std::int64_t part = (values.numel() + size_ - 1) / size_;
  std::vector<std::byte> padded(static_cast<std::size_t>(part * size_ * size_of(call.dtype)));
  copy_bytes(values.data(), padded.data(), values.bytes());
  const HostView whole(padded.data(), call.dtype, {part * size_});
  const HostView own(padded.data() + rank_ * part * size_of(call.dtype), call.dtype, {part});
  reduce_scatter_integers(call, whole, own);
  run_all_gather(call, own, whole);
  copy_bytes(padded.data(), values.data(), values.bytes());
}

void HostCommunicator::broadcast(TensorView values, int root, StreamView stream) {
  const Call call = call_of(Operation::broadcast, values, root);
  check_peer(root);
  launch(call, stream,
         [this, call, memory = checked(call, values)] { run_broadcast(call, memory); });
}

void HostCommunicator::send(TensorView values, int target, StreamView stream) {
  const Call call = call_of(Operation::send, values, target);
  check_peer(target);
  DSTRAIN_CHECK(target != rank_, "rank {} sends to itself", rank_);
  launch(call, stream, [this, call, memory = checked(call, values)] { run_send(call, memory); });
}

void HostCommunicator::receive(TensorView values, int source, StreamView stream) {
  const Call call = call_of(Operation::receive, values, source);
  check_peer(source);
  DSTRAIN_CHECK(source != rank_, "rank {} receives from itself", rank_);
  launch(call, stream, [this, call, memory = checked(call, values)] { run_receive(call, memory); });
}

}  // namespace dstrain::comm
