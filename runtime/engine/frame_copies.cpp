#include "runtime/engine/frame_copies.h"

#include "runtime/ops/convert.h"

namespace dstrain::engine {

void FrameCopies::begin(const FrameCall& call) {
  if (point_) {
    const profile::Recording recording(timeline_, profile::Lane::compute, profile::Activity::wait);
    point_->wait_on(compute_);
  }
  launch(call.fetches);
  point_ = Event::record(copies_);
}

void FrameCopies::end(const FrameCall& call) {
  launch(call.stores);
}

void FrameCopies::launch(std::span<const FrameCopy> copies) {
  if (copies.empty()) return;
  Event::record(compute_).wait_on(copies_);
  for (const FrameCopy& copy : copies) ops::convert(copy.source, copy.target, copies_);
}

}  // namespace dstrain::engine
