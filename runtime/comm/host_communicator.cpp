#include "runtime/comm/host_communicator.h"

#include "runtime/comm/checked_call.h"
#include "runtime/comm/host_sum.h"
#include "runtime/device/cpu_stream_access.h"
#include "runtime/tensor/host_access.h"

namespace dstrain::comm {
namespace {

HostView checked(const Call& call, const TensorView& view) {
  DSTRAIN_CHECK(shares_host_memory(view.device().kind), "{}: not in host memory", to_string(call));
  DSTRAIN_CHECK(!view.empty() || view.numel() == 0, "{}: no memory", to_string(call));
  return host_access(view);
}

bool is_integer(const Call& call) {
  return call.dtype == DType::i32 || call.dtype == DType::i64;
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

void HostCommunicator::all_gather(TensorView shard, TensorView whole, StreamView stream) {
  const Call call = all_gather_call(shard, whole, {rank_, size_});
  launch(call, stream, [this, call, own = checked(call, shard), all = checked(call, whole)] {
    run_all_gather(call, own, all);
  });
}

void HostCommunicator::reduce_scatter(TensorView whole, TensorView shard, StreamView stream) {
  const Call call = reduce_scatter_call(whole, shard, {rank_, size_});
  launch(call, stream, [this, call, own = checked(call, shard), all = checked(call, whole)] {
    is_integer(call) ? reduce_scatter_integers(call, all, own) : run_reduce_scatter(call, all, own);
  });
}

void HostCommunicator::all_reduce(TensorView values, StreamView stream) {
  const Call call = all_reduce_call(values);
  launch(call, stream, [this, call, memory = checked(call, values)] {
    is_integer(call) ? all_reduce_integers(call, memory) : run_all_reduce(call, memory);
  });
}

void HostCommunicator::all_to_all(TensorView parts, TensorView received, StreamView stream) {
  const Call call = all_to_all_call(parts, received, {rank_, size_});
  launch(call, stream, [this, call, from = checked(call, parts), to = checked(call, received)] {
    run_all_to_all(call, from, to);
  });
}

/// Every rank receives the parts of its own shard and adds them: no sum needs fewer bytes.
void HostCommunicator::reduce_scatter_integers(const Call& call, HostView whole, HostView shard) {
  std::vector<std::byte> received(static_cast<std::size_t>(whole.bytes()));
  run_all_to_all(call, whole, {received.data(), call.dtype, whole.shape()});
  add_integers(received.data(), size_, shard);
}

/// Pads the values to a multiple of the number of ranks.
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
  const Call call = broadcast_call(values, root, {rank_, size_});
  launch(call, stream,
         [this, call, memory = checked(call, values)] { run_broadcast(call, memory); });
}

void HostCommunicator::send(TensorView values, int target, StreamView stream) {
  const Call call = send_call(values, target, {rank_, size_});
  launch(call, stream, [this, call, memory = checked(call, values)] { run_send(call, memory); });
}

void HostCommunicator::receive(TensorView values, int source, StreamView stream) {
  const Call call = receive_call(values, source, {rank_, size_});
  launch(call, stream, [this, call, memory = checked(call, values)] { run_receive(call, memory); });
}

}  // namespace dstrain::comm
