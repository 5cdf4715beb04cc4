#include "runtime/profile/timeline.h"

namespace dstrain::profile {

Timeline::Timeline(const Clock& clock, std::size_t spans_per_lane)
    : clock_(clock),
      origin_(clock.now_seconds()),
      lanes_{Ring<Span>(spans_per_lane), Ring<Span>(spans_per_lane), Ring<Span>(spans_per_lane)},
      steps_(steps_kept) {
  compute_.reserve(spans_per_lane);
  communication_.reserve(spans_per_lane);
}

void Timeline::begin_step(std::int64_t step) {
  step_ = step;
  step_begin_ = now();
  for (std::size_t i = 0; i < lane_count; ++i) first_of_step_[i] = lanes_[i].pushed();
}

void Timeline::end_step() {
  StepTimes times = add_up(of_this_step(Lane::compute, compute_),
                           of_this_step(Lane::communication, communication_));
  const Span span{step_begin_, now(), step_, Activity::step};
  record(Lane::compute, span);
  times.step = step_;
  times.seconds = span.seconds();
  steps_.push(times);
  total_ += times;
  ++total_.step;
}

std::span<const Span> Timeline::of_this_step(Lane lane, std::vector<Span>& buffer) const {
  const Ring<Span>& spans = lanes_[static_cast<std::size_t>(lane)];
  buffer.clear();
  const std::int64_t first =
      std::max(spans.first_kept(), first_of_step_[static_cast<std::size_t>(lane)]);
  for (std::int64_t i = first; i < spans.pushed(); ++i) buffer.push_back(spans[i]);
  return buffer;
}

}  // namespace dstrain::profile
