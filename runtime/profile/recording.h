#pragma once
#include <optional>

#include "runtime/profile/timeline.h"

namespace dstrain::profile {

/// Records a span from construction to destruction; does nothing if `timeline` is null.
class Recording {
 public:
  /// Records what the host does.
  Recording(Timeline* timeline, Lane lane, Activity activity, std::int64_t detail = 0)
      : timeline_(timeline), lane_(lane), span_{0, 0, detail, activity} {
    if (timeline_ == nullptr) return;
    timeline_->open_range(activity, detail);
    span_.begin = timeline_->now();
  }
  /// If the device has a clock, records when it executes the work launched on `stream` in this
  /// scope. Otherwise, records the host's time.
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
  std::optional<StreamView> stream_;  ///< set if the device measures it
  Timeline::Stamp stamp_ = 0;
};

/// Returns `timeline` if the rank has a device with a clock, or a profiler that shows ranges, else
/// null. For spans that mean something only in these cases.
inline Timeline* beside_device(Timeline* timeline) {
  if (timeline == nullptr) return nullptr;
  return timeline->has_device() || timeline->shows_ranges() ? timeline : nullptr;
}

}  // namespace dstrain::profile
