#pragma once
#include <optional>

#include "runtime/profile/timeline.h"

namespace dstrain::profile {

/// Records what happens from its making to its end; nothing when `timeline` is null.
class Recording {
 public:
  /// What the host does.
  Recording(Timeline* timeline, Lane lane, Activity activity, std::int64_t detail = 0)
      : timeline_(timeline), lane_(lane), span_{0, 0, detail, activity} {
    if (timeline_ == nullptr) return;
    timeline_->open_range(activity, detail);
    span_.begin = timeline_->now();
  }
  /// What `stream` is given meanwhile, when its device does that; the same for one of the host.
  Recording(
      Timeline* timeline, StreamView stream, Lane lane, Activity activity, std::int64_t detail = 0)
      : Recording(timeline, lane, activity, detail) {
    if (timeline_ == nullptr || !timeline_->times(stream)) return;
    stream_ = stream;
    stamp_ = timeline_->begin_on(stream);
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  Recording(Recording&&) = delete;
  Recording& operator=(Recording&&) = delete;
  ~Recording() {
    if (timeline_ == nullptr) return;
    timeline_->close_range();
    if (stream_) {
      timeline_->end_on(*stream_, lane_, {span_.activity, span_.detail, stamp_});
      return;
    }
    span_.end = timeline_->now();
    timeline_->record(lane_, span_);
  }

 private:
  Timeline* timeline_;
  Lane lane_;
  Span span_;
  std::optional<StreamView> stream_;  ///< of a device that tells
  Timeline::Stamp stamp_ = 0;
};

/// `timeline` of a rank with a device that tells what it does when, or whose profiler does, else
/// null: for what happens only beside such a device, or shows only there.
inline Timeline* beside_device(Timeline* timeline) {
  if (timeline == nullptr) return nullptr;
  return timeline->has_device() || timeline->shows_ranges() ? timeline : nullptr;
}

}  // namespace dstrain::profile
