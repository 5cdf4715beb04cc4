#pragma once
#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/profile/ring.h"
#include "runtime/profile/step_times.h"

namespace dstrain::profile {

/// What one rank did when: the last spans of each lane and the sums of each step, in memory taken
/// at once. Any thread may record; restart() and the members of steps are for the computing thread,
/// begin_step() and end_step() while no communication is under way. The clock must outlive it.
class Timeline {
 public:
  /// 64 Ki spans, which take 2 MiB, are some hundred steps of a small model.
  static constexpr std::size_t spans_kept = std::size_t{1} << 16;
  static constexpr std::size_t steps_kept = std::size_t{1} << 12;
  explicit Timeline(const Clock& clock, std::size_t spans_per_lane = spans_kept);

  /// Forgets everything; now is time 0. To be called on all ranks right after they have met, so
  /// that their times compare.
  void restart();
  [[nodiscard]] double now() const { return clock_.now_seconds() - origin_; }
  void record(Lane lane, const Span& span);

  /// For a lane of operations of which several may be under way at once: what lies between the
  /// begin() of one while there is no other and the end() that leaves none is one span, and its
  /// detail the sum of theirs.
  void begin(Lane lane, Activity activity, std::int64_t detail);
  void end(Lane lane);

  void begin_step(std::int64_t step);
  /// Adds the step up and records it as a span around all of it.
  void end_step();

  /// What is there of a lane, oldest first.
  [[nodiscard]] std::vector<Span> spans(Lane lane) const;
  /// How many older ones are not.
  [[nodiscard]] std::int64_t spans_lost(Lane lane) const;
  [[nodiscard]] const Ring<StepTimes>& steps() const { return steps_; }
  /// The sum of all steps so far; `step` is their number.
  [[nodiscard]] const StepTimes& total() const { return total_; }

 private:
  struct LaneSpans {
    explicit LaneSpans(std::size_t capacity) : kept(capacity) { of_step.reserve(capacity + 1); }
    Ring<Span> kept;
    int under_way = 0;            ///< operations between begin() and end()
    Span open{};                  ///< of these
    std::int64_t step_begin = 0;  ///< number of the step's first span
    std::vector<Span> of_step;    ///< room for add_up()
  };
  LaneSpans& of(Lane lane) { return lanes_[static_cast<std::size_t>(lane)]; }
  [[nodiscard]] const LaneSpans& of(Lane lane) const {
    return lanes_[static_cast<std::size_t>(lane)];
  }
  std::span<const Span> step_spans(Lane lane);

  const Clock& clock_;
  double origin_;
  mutable std::mutex mutex_;  // of the lanes
  std::vector<LaneSpans> lanes_;
  Ring<StepTimes> steps_;
  StepTimes total_;
  std::int64_t step_ = 0;
  double step_begin_ = 0;
};

/// Records what happens from its making to its end; nothing when `timeline` is null.
class Recording {
 public:
  Recording(Timeline* timeline, Lane lane, Activity activity, std::int64_t detail = 0)
      : timeline_(timeline), lane_(lane), span_{0, 0, detail, activity} {
    if (timeline_ != nullptr) span_.begin = timeline_->now();
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  Recording(Recording&&) = delete;
  Recording& operator=(Recording&&) = delete;
  ~Recording() {
    if (timeline_ == nullptr) return;
    span_.end = timeline_->now();
    timeline_->record(lane_, span_);
  }

 private:
  Timeline* timeline_;
  Lane lane_;
  Span span_;
};

}  // namespace dstrain::profile
