#include "runtime/profile/timeline.h"

#include <algorithm>
#include <utility>

namespace dstrain::profile {
namespace {

/// Number of pending spans before the timeline checks which of them are done.
constexpr std::size_t pending_least = 1024;

}  // namespace

Timeline::Timeline(const Clock& clock, std::size_t spans_per_lane)
    : clock_(clock),
      origin_(clock.now_seconds()),
      pending_most_(pending_least),
      steps_(steps_kept),
      gpu_samples_(steps_kept) {
  for (std::size_t lane = 0; lane < lane_count; ++lane) lanes_.emplace_back(spans_per_lane);
}

Timeline::Timeline(const Clock& clock, Device device, std::size_t spans_per_lane)
    : Timeline(clock, spans_per_lane) {
  device_.emplace(device);
}

void Timeline::show(HostRanges& ranges, std::vector<std::string> units) {
  ranges_ = &ranges;
  units_ = std::move(units);
}

void Timeline::restart() {
  catch_up();
  const std::lock_guard lock(mutex_);
  for (LaneSpans& lane : lanes_) {
    lane.kept.clear();
    lane.open.begin = 0;
    lane.open.detail = 0;
    lane.floor = 0;
  }
  steps_.clear();
  gpu_samples_.clear();
  total_ = {};
  origin_ = clock_.now_seconds();
}

void Timeline::record(Lane lane, const Span& span) {
  const bool of_device = lane == Lane::compute || lane == Lane::communication;
  const std::lock_guard lock(mutex_);
  of(device_ && of_device ? Lane::host : lane).kept.push(span);
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

std::optional<double> Timeline::clock_error_seconds() const {
  if (!device_) return std::nullopt;
  return device_->clock.error_seconds();
}

/// Only the computing thread checks which spans are done, because it owns the steps.
Timeline::Stamp Timeline::begin_on(StreamView stream) {
  if (stream == device_->compute) {
    const std::lock_guard lock(mutex_);
    if (pending_ >= pending_most_) {
      take_all_done();
      pending_most_ = std::max(pending_least, 2 * pending_);
    }
  }
  return device_->clock.stamp(stream);
}

void Timeline::end_on(StreamView stream, Lane lane, const Launched& launched) noexcept {
  const std::lock_guard lock(mutex_);
  of(lane).pending.push_back({launched, device_->clock.stamp(stream), comparison_});
  ++pending_;
}

void Timeline::catch_up() {
  std::vector<Stamp> last;
  {
    const std::lock_guard lock(mutex_);
    for (const LaneSpans& lane : lanes_) {
      if (!lane.pending.empty()) last.push_back(lane.pending.back().end);
    }
  }
  for (const Stamp stamp : last) device_->clock.wait_for(stamp);
  const std::lock_guard lock(mutex_);
  take_all_done();
}

void Timeline::take_all_done() {
  for (LaneSpans& lane : lanes_) take_done(lane);
}

/// A step ends after the work that other streams do for it, so their lanes are read first.
void Timeline::take_done(LaneSpans& lane) {
  while (!lane.pending.empty()) {
    const Pending& next = lane.pending.front();
    const std::optional<double> end = device_->clock.seconds(next.end);
    if (!end) return;
    const Span span = timed(lane, next, *end);
    lane.pending.pop_front();
    --pending_;
    if (span.activity == Activity::step) {
      for (const Lane other : {Lane::communication, Lane::copies, Lane::transfers}) {
        take_done(of(other));
      }
      add_step(span);
    } else {
      lane.kept.push(span);
    }
  }
}

/// A new comparison of the clocks may set time back a little; within a lane, time must not go back.
Span Timeline::timed(LaneSpans& lane, const Pending& pending, double end_seconds) {
  if (lane.comparison != pending.comparison) {
    lane.comparison = pending.comparison;
    const std::int64_t pushed = lane.kept.pushed();
    lane.floor = pushed > 0 ? lane.kept[pushed - 1].end : 0;
  }
  const double begin_seconds = device_->clock.seconds(pending.launched.begin).value();
  const double begin = std::max(begin_seconds - origin_, lane.floor);
  return {begin, std::max(end_seconds - origin_, begin), pending.launched.detail,
          pending.launched.activity};
}

/// A step that was interrupted has not ended its range.
void Timeline::end_step_range() {
  if (const auto range = std::exchange(step_range_, std::nullopt)) ranges_->end(*range);
}

void Timeline::begin_step(std::int64_t step) {
  end_step_range();
  if (ranges_ != nullptr) step_range_ = ranges_->begin(label(Activity::step, step, {}).c_str());
  step_ = step;
  if (!device_) {
    step_begin_ = now();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    take_all_done();
    device_->clock.compare();
    ++comparison_;
  }
  step_stamp_ = device_->clock.stamp(device_->compute);
}

void Timeline::end_step() {
  end_step_range();
  if (device_) {
    end_on(device_->compute, Lane::compute, {Activity::step, step_, step_stamp_});
    return;
  }
  const std::lock_guard lock(mutex_);
  add_step({step_begin_, now(), step_, Activity::step});
}

/// Returns the lane's kept spans that have ended, and the open one, cut to `step`.
std::span<const Span> Timeline::spans_in(const Span& step, Lane lane) {
  LaneSpans& spans = of(lane);
  const Ring<Span>& kept = spans.kept;
  spans.in_step.clear();
  const auto add = [&](Span span) {
    if (span.begin >= step.end) return;
    span.begin = std::max(span.begin, step.begin);
    span.end = std::min(span.end, step.end);
    spans.in_step.push_back(span);
  };
  std::int64_t first = kept.pushed();
  while (first > kept.first_kept() && kept[first - 1].end > step.begin) --first;
  for (std::int64_t i = first; i < kept.pushed(); ++i) add(kept[i]);
  if (spans.under_way > 0) {
    Span open = spans.open;
    open.end = now();
    add(open);
  }
  return spans.in_step;
}

void Timeline::add_step(const Span& step) {
  const StepSpans spans{.compute = spans_in(step, Lane::compute),
                        .communication = spans_in(step, Lane::communication),
                        .host = spans_in(step, Lane::host),
                        .reads = spans_in(step, Lane::disk_reads),
                        .writes = spans_in(step, Lane::disk_writes)};
  StepTimes times = add_up(spans);
  times.step = step.detail;
  times.seconds = step.seconds();
  times.reading = seconds_within(step, spans.reads);
  times.writing = seconds_within(step, spans.writes);
  times.early_updates = seconds_within(step, spans_in(step, Lane::early_updates));
  of(Lane::compute).kept.push(step);
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
