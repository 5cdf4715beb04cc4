#include "runtime/engine/recorded_communicator.h"

namespace dstrain::engine {

using profile::Activity;

template <class Launch>
void RecordedCommunicator::record(Activity activity,
                                  Bytes bytes,
                                  StreamView stream,
                                  Launch&& launch) {
  stream.launch([this] { begin_ = timeline_.now(); });
  launch();
  stream.launch([this, activity, bytes] {
    timeline_.record(profile::Lane::communication, {begin_, timeline_.now(), bytes, activity});
  });
}

void RecordedCommunicator::all_gather(TensorView shard, TensorView whole, StreamView stream) {
  record(Activity::all_gather, shard.bytes(), stream,
         [&] { inner_.all_gather(shard, whole, stream); });
}

void RecordedCommunicator::reduce_scatter(TensorView whole, TensorView shard, StreamView stream) {
  record(Activity::reduce_scatter, whole.bytes(), stream,
         [&] { inner_.reduce_scatter(whole, shard, stream); });
}

void RecordedCommunicator::all_reduce(TensorView values, StreamView stream) {
  record(Activity::all_reduce, values.bytes(), stream, [&] { inner_.all_reduce(values, stream); });
}

void RecordedCommunicator::all_to_all(TensorView parts, TensorView received, StreamView stream) {
  record(Activity::all_to_all, parts.bytes(), stream,
         [&] { inner_.all_to_all(parts, received, stream); });
}

void RecordedCommunicator::broadcast(TensorView values, int root, StreamView stream) {
  record(Activity::broadcast, values.bytes(), stream,
         [&] { inner_.broadcast(values, root, stream); });
}

void RecordedCommunicator::send(TensorView values, int target, StreamView stream) {
  record(Activity::send, values.bytes(), stream, [&] { inner_.send(values, target, stream); });
}

void RecordedCommunicator::receive(TensorView values, int source, StreamView stream) {
  record(Activity::receive, values.bytes(), stream,
         [&] { inner_.receive(values, source, stream); });
}

}  // namespace dstrain::engine
