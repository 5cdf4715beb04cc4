#include "runtime/profile/timeline.h"

namespace dstrain::profile {
namespace {

/// Those of number `begin` and later that are still kept, copied to `buffer`.
std::span<const Span> since(std::int64_t begin,
                            const Ring<Span>& spans,
                            std::vector<Span>& buffer) {
  buffer.clear();
  for (std::int64_t i = std::max(begin, spans.first_kept()); i < spans.pushed(); ++i) {
    buffer.push_back(spans[i]);
  }
  return buffer;
}

}  // namespace

Timeline::Timeline(const Clock& clock, std::size_t spans_per_lane)
    : clock_(clock),
      origin_(clock.now_seconds()),
      lanes_{Ring<Span>(spans_per_lane), Ring<Span>(spans_per_lane), Ring<Span>(spans_per_lane)},
      steps_(steps_kept) {
  compute_.reserve(spans_per_lane);
  communication_.reserve(spans_per_lane);
}

void Timeline::restart() {
  for (Ring<Span>& lane : lanes_) lane.clear();
  steps_.clear();
  total_ = {};
  origin_ = clock_.now_seconds();
}

void Timeline::begin_step(std::int64_t step) {
  step_ = step;
  step_begin_ = now();
  compute_begin_ = lane(Lane::compute).pushed();
  communication_begin_ = lane(Lane::communication).pushed();
}

void Timeline::end_step() {
  StepTimes times = add_up(since(compute_begin_, lane(Lane::compute), compute_),
                           since(communication_begin_, lane(Lane::communication), communication_));
  const Span span{step_begin_, now(), step_, Activity::step};
  record(Lane::compute, span);
  times.step = step_;
  times.seconds = span.seconds();
  steps_.push(times);
  total_ += times;
  ++total_.step;
}

}  // namespace dstrain::profile
