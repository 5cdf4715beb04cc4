#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/device/host_ranges.h"
#include "runtime/device/stream_clock.h"
#include "runtime/profile/ring.h"
#include "runtime/profile/step_times.h"

namespace dstrain::profile {

/// What one rank did when: the last spans of each lane and the sums of each step, in memory taken
/// at once. Any thread may record; restart(), catch_up() and the members of steps are for the
/// computing thread, begin_step() and end_step() while no communication is under way on the host.
/// The clocks must outlive it.
///
/// Of a rank with a device that has a clock of its own, what streams are given is recorded as it is
/// launched, by stamps before and after it, and is a span once the device has told when it did it:
/// a step is added up some time after its end, between the moments at which the computing stream
/// began and ended it. Besides the memory above it takes as much as the device is behind.
class Timeline {
 public:
  /// 64 Ki spans, which take 2 MiB, are some hundred steps of a small model.
  static constexpr std::size_t spans_kept = std::size_t{1} << 16;
  static constexpr std::size_t steps_kept = std::size_t{1} << 12;
  explicit Timeline(const Clock& clock, std::size_t spans_per_lane = spans_kept);
  struct Device {
    StreamClock& clock;  ///< by `clock` of the host
    StreamView compute;
  };
  Timeline(const Clock& clock, Device device, std::size_t spans_per_lane = spans_kept);

  /// From now on `ranges`, which must outlive it, shows steps and what threads record or launch
  /// between open_range() and close_range(), too. `units`: names.
  void show(HostRanges& ranges, std::vector<std::string> units);
  [[nodiscard]] bool shows_ranges() const { return ranges_ != nullptr; }
  /// Of the calling thread, one within the other.
  void open_range(Activity activity, std::int64_t detail) const {
    if (ranges_ != nullptr) ranges_->push(label(activity, detail, units_).c_str());
  }
  void close_range() const noexcept {
    if (ranges_ != nullptr) ranges_->pop();
  }

  /// Forgets everything; now is time 0. To be called on all ranks right after they have met, so
  /// that their times compare. Waits for the device.
  void restart();
  [[nodiscard]] double now() const { return clock_.now_seconds() - origin_; }
  /// What the host did. On the lane of the host, when a device fills that of the span.
  void record(Lane lane, const Span& span);

  /// Whether a device beside the host tells when it does what it is given.
  [[nodiscard]] bool has_device() const { return device_.has_value(); }
  /// Whether it tells of this stream.
  [[nodiscard]] bool times(StreamView stream) const {
    return device_ && stream.device() == device_->compute.device();
  }
  /// By how much the device's times may be wrong; nothing without one.
  [[nodiscard]] std::optional<double> clock_error_seconds() const;
  using Stamp = StreamClock::Stamp;
  /// What `stream`, of which the device tells, is given between the two is a span of `lane`. Never
  /// waits. Spans of a lane end in the order of the calls, one stream after another.
  Stamp begin_on(StreamView stream);
  struct Launched {
    Activity activity;
    std::int64_t detail;
    Stamp begin;
  };
  void end_on(StreamView stream, Lane lane, const Launched& launched) noexcept;
  /// Waits until the device has done all that was recorded so far.
  void catch_up();

  /// For a lane of operations of which several may be under way at once: what lies between the
  /// begin() of one while there is no other and the end() that leaves none is one span, and its
  /// detail the sum of theirs.
  void begin(Lane lane, Activity activity, std::int64_t detail);
  void end(Lane lane);

  /// Of a device, it compares the clocks for what follows.
  void begin_step(std::int64_t step);
  /// Adds the step up, when the device has done it, and records it as a span around all of it.
  void end_step();

  /// What the GPU's sensors say now; for the computing thread.
  void record_gpu(std::optional<double> watts, std::optional<double> busy_percent) {
    gpu_samples_.push({now(), watts, busy_percent});
  }
  [[nodiscard]] const Ring<GpuSample>& gpu_samples() const { return gpu_samples_; }

  /// What is there of a lane, oldest first.
  [[nodiscard]] std::vector<Span> spans(Lane lane) const;
  /// How many older ones are not.
  [[nodiscard]] std::int64_t spans_lost(Lane lane) const;
  [[nodiscard]] const Ring<StepTimes>& steps() const { return steps_; }
  /// The sum of all steps so far; `step` is their number.
  [[nodiscard]] const StepTimes& total() const { return total_; }

 private:
  /// What the device has not been seen to have done.
  struct Pending {
    Launched launched;
    Stamp end;
    std::int64_t comparison;  ///< of the clocks, that its times go by
  };
  struct LaneSpans {
    explicit LaneSpans(std::size_t capacity) : kept(capacity) { in_step.reserve(capacity + 1); }
    Ring<Span> kept;
    int under_way = 0;          ///< operations between begin() and end()
    Span open{};                ///< of these
    std::vector<Span> in_step;  ///< room for add_up()
    std::deque<Pending> pending;
    std::int64_t comparison = 0;  ///< of the last span
    double floor = 0;             ///< where the spans before that comparison end
  };
  LaneSpans& of(Lane lane) { return lanes_[static_cast<std::size_t>(lane)]; }
  [[nodiscard]] const LaneSpans& of(Lane lane) const {
    return lanes_[static_cast<std::size_t>(lane)];
  }
  // Under the lock.
  void take_done(LaneSpans& lane);
  void take_all_done();
  [[nodiscard]] Span timed(LaneSpans& lane, const Pending& pending, double end_seconds);
  void add_step(const Span& step);
  std::span<const Span> spans_in(const Span& step, Lane lane);
  void end_step_range();

  const Clock& clock_;
  std::optional<Device> device_;
  HostRanges* ranges_ = nullptr;
  std::vector<std::string> units_;
  std::optional<HostRanges::Id> step_range_;
  double origin_;
  mutable std::mutex mutex_;  // of the lanes and what is pending
  std::vector<LaneSpans> lanes_;
  std::int64_t comparison_ = 0;
  std::size_t pending_ = 0;       ///< spans of all lanes
  std::size_t pending_most_ = 0;  ///< so many, and it is seen which are done
  Ring<StepTimes> steps_;
  Ring<GpuSample> gpu_samples_;
  StepTimes total_;
  std::int64_t step_ = 0;
  double step_begin_ = 0;
  Stamp step_stamp_ = 0;
};

}  // namespace dstrain::profile
