#include "runtime/engine/frame_copies.h"

#include <cstring>

namespace dstrain::engine {

void FrameCopies::begin(const FrameCall& call) {
  if (point_) {
    const profile::Recording recording(timeline_, profile::Lane::compute, profile::Activity::wait);
    point_->wait_on(compute_);
  }
  launch(call.fetches);
  point_ = Event::record(stream_);
}

void FrameCopies::end(const FrameCall& call) {
  launch(call.stores);
}

void FrameCopies::launch(std::span<const FrameCopy> copies) {
  if (copies.empty()) return;
  Event::record(compute_).wait_on(stream_);
  for (const FrameCopy& copy : copies) {
    StreamView(stream_).launch(
        [copy] { std::memcpy(copy.target.data(), copy.source.data(), copy.target.size()); });
  }
}

}  // namespace dstrain::engine
