#include "runtime/engine/frame_copies.h"

#include "runtime/ops/convert.h"
#include "runtime/profile/recording.h"

namespace dstrain::engine {

void FrameCopies::begin(const FrameCall& call) {
  if (point_) {
    const profile::Recording recording(timeline_, compute_, profile::Lane::compute,
                                       profile::Activity::wait);
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
  for (const FrameCopy& copy : copies) {
    const profile::Recording recording(profile::beside_device(timeline_), copies_,
                                       profile::Lane::copies, profile::Activity::copy,
                                       copy.source.bytes());
    ops::convert(copy.source, copy.target, copies_);
  }
}

}  // namespace dstrain::engine
