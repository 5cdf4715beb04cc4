#include "runtime/profile/timeline.h"

namespace dstrain::profile {

Timeline::Timeline(const Clock& clock, std::size_t spans_per_lane)
    : clock_(clock), origin_(clock.now_seconds()), steps_(steps_kept) {
  for (std::size_t lane = 0; lane < lane_count; ++lane) lanes_.emplace_back(spans_per_lane);
}

void Timeline::restart() {
  const std::lock_guard lock(mutex_);
  for (LaneSpans& lane : lanes_) {
    lane.kept.clear();
    lane.open.begin = 0;
    lane.open.detail = 0;
  }
  steps_.clear();
  total_ = {};
  origin_ = clock_.now_seconds();
}

void Timeline::record(Lane lane, const Span& span) {
  const std::lock_guard lock(mutex_);
  of(lane).kept.push(span);
}

void Timeline::begin(Lane lane, Activity activity, std::int64_t detail) {
  const std::lock_guard lock(mutex_);
  LaneSpans& spans = of(lane);
  if (spans.under_way++ == 0) spans.open = {now(), 0, 0, activity};
  spans.open.detail += detail;
}

void Timeline::end(Lane lane) {
  const std::lock_guard lock(mutex_);
  LaneSpans& spans = of(lane);
  if (--spans.under_way > 0) return;
  spans.open.end = now();
  spans.kept.push(spans.open);
}

void Timeline::begin_step(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  step_ = step;
  step_begin_ = now();
  for (LaneSpans& lane : lanes_) lane.step_begin = lane.kept.pushed();
}

/// Those that have ended in the step and are still kept, and the one that is under way.
std::span<const Span> Timeline::step_spans(Lane lane) {
  LaneSpans& spans = of(lane);
  const Ring<Span>& kept = spans.kept;
  spans.of_step.clear();
  for (std::int64_t i = std::max(spans.step_begin, kept.first_kept()); i < kept.pushed(); ++i) {
    spans.of_step.push_back(kept[i]);
  }
  if (spans.under_way > 0) {
    spans.of_step.push_back(spans.open);
    spans.of_step.back().end = now();
  }
  return spans.of_step;
}

void Timeline::end_step() {
  const std::lock_guard lock(mutex_);
  const Span whole{step_begin_, now(), step_, Activity::step};
  const std::span<const Span> compute = step_spans(Lane::compute);
  const std::span<const Span> reads = step_spans(Lane::disk_reads);
  const std::span<const Span> writes = step_spans(Lane::disk_writes);
  StepTimes times = add_up(compute, step_spans(Lane::communication));
  times.step = step_;
  times.seconds = whole.seconds();
  times.reading = seconds_within(whole, reads);
  times.writing = seconds_within(whole, writes);
  times.early_updates = seconds_within(whole, step_spans(Lane::early_updates));
  times.optimizer = add_up_optimizer(compute, reads, writes);
  of(Lane::compute).kept.push(whole);
  steps_.push(times);
  total_ += times;
  ++total_.step;
}

std::vector<Span> Timeline::spans(Lane lane) const {
  const std::lock_guard lock(mutex_);
  return of(lane).kept.kept();
}

std::int64_t Timeline::spans_lost(Lane lane) const {
  const std::lock_guard lock(mutex_);
  return of(lane).kept.first_kept();
}

}  // namespace dstrain::profile
