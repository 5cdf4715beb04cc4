#include "runtime/engine/observed_communicator.h"

namespace dstrain::engine {

using profile::Activity;

void ObservedCommunicator::begin(const Operation& operation) {
  if (observers_.timeline != nullptr) begin_ = observers_.timeline->now();
  if (observers_.progress == nullptr) return;
  observers_.progress->begin_operation({.name = profile::name_of(operation.activity),
                                        .numel = operation.numel,
                                        .dtype = name_of(operation.dtype),
                                        .peer = operation.peer});
}

void ObservedCommunicator::end(const Operation& operation) {
  if (observers_.progress != nullptr) observers_.progress->end_operation();
  if (observers_.timeline == nullptr) return;
  const Bytes bytes = operation.numel * size_of(operation.dtype);
  observers_.timeline->record(profile::Lane::communication,
                              {begin_, observers_.timeline->now(), bytes, operation.activity});
}

template <class Launch>
void ObservedCommunicator::observe(const Operation& operation, StreamView stream, Launch&& launch) {
  stream.launch([this, operation] { begin(operation); });
  launch();
  stream.launch([this, operation] { end(operation); });
}

void ObservedCommunicator::all_gather(TensorView shard, TensorView whole, StreamView stream) {
  observe(operation_on(Activity::all_gather, shard), stream,
          [&] { inner_.all_gather(shard, whole, stream); });
}

void ObservedCommunicator::reduce_scatter(TensorView whole, TensorView shard, StreamView stream) {
  observe(operation_on(Activity::reduce_scatter, whole), stream,
          [&] { inner_.reduce_scatter(whole, shard, stream); });
}

void ObservedCommunicator::all_reduce(TensorView values, StreamView stream) {
  observe(operation_on(Activity::all_reduce, values), stream,
          [&] { inner_.all_reduce(values, stream); });
}

void ObservedCommunicator::all_to_all(TensorView parts, TensorView received, StreamView stream) {
  observe(operation_on(Activity::all_to_all, parts), stream,
          [&] { inner_.all_to_all(parts, received, stream); });
}

void ObservedCommunicator::broadcast(TensorView values, int root, StreamView stream) {
  observe(operation_on(Activity::broadcast, values, root), stream,
          [&] { inner_.broadcast(values, root, stream); });
}

void ObservedCommunicator::send(TensorView values, int target, StreamView stream) {
  observe(operation_on(Activity::send, values, target), stream,
          [&] { inner_.send(values, target, stream); });
}

void ObservedCommunicator::receive(TensorView values, int source, StreamView stream) {
  observe(operation_on(Activity::receive, values, source), stream,
          [&] { inner_.receive(values, source, stream); });
}

}  // namespace dstrain::engine
