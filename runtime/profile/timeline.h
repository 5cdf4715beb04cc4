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

/// Records when one rank did what: the last spans of each lane and the sums of each step, in memory
/// allocated at once. Any thread may record; restart(), catch_up() and the functions for steps are
/// for the computing thread. Call begin_step() and end_step() while no communication runs on the
/// host. The clocks must outlive the timeline.
///
/// If the device has its own clock, work on its streams is stamped before and after, at launch, and
/// becomes a span when the device reports both times. A step is then added up some time after its
/// end; it lasts from when the computing stream began it until it ended it. Spans that the device
/// has not finished need further memory.
class Timeline {
 public:
  /// 64 Ki spans take 2 MiB and cover some hundred steps of a small model.
  static constexpr std::size_t spans_kept = std::size_t{1} << 16;
  static constexpr std::size_t steps_kept = std::size_t{1} << 12;
  explicit Timeline(const Clock& clock, std::size_t spans_per_lane = spans_kept);
  struct Device {
    StreamClock& clock;  ///< in seconds of the host's `clock`
    StreamView compute;
  };
  Timeline(const Clock& clock, Device device, std::size_t spans_per_lane = spans_kept);

  /// From now on also shows steps, and ranges between open_range() and close_range(), in the
  /// profiler `ranges`, which must outlive the timeline. `units`: names.
  void show(HostRanges& ranges, std::vector<std::string> units);
  [[nodiscard]] bool shows_ranges() const { return ranges_ != nullptr; }
  /// Ranges of a thread are nested.
  void open_range(Activity activity, std::int64_t detail) const {
    if (ranges_ != nullptr) ranges_->push(label(activity, detail, units_).c_str());
  }
  void close_range() const noexcept {
    if (ranges_ != nullptr) ranges_->pop();
  }

  /// Forgets everything and sets the time to 0. Call on all ranks right after a barrier, so that
  /// their times are comparable. Waits for the device.
  void restart();
  [[nodiscard]] double now() const { return clock_.now_seconds() - origin_; }
  /// Records what the host did. If a device fills that lane, the span goes to the host lane.
  void record(Lane lane, const Span& span);

  /// Whether a device beside the host reports when it executes its work.
  [[nodiscard]] bool has_device() const { return device_.has_value(); }
  /// Whether the device reports times of this stream.
  [[nodiscard]] bool times(StreamView stream) const {
    return device_ && stream.device() == device_->compute.device();
  }
  /// Returns the maximum error of the device's times; nothing without a device.
  [[nodiscard]] std::optional<double> clock_error_seconds() const;
  using Stamp = StreamClock::Stamp;
  /// Work launched on `stream` between begin_on() and end_on() becomes a span of `lane`. The device
  /// must report times of the stream. Never waits. Spans of a lane end in the order of the calls,
  /// one stream after another.
  Stamp begin_on(StreamView stream);
  struct Launched {
    Activity activity;
    std::int64_t detail;
    Stamp begin;
  };
  void end_on(StreamView stream, Lane lane, const Launched& launched) noexcept;
  /// Waits until the device has finished everything recorded so far.
  void catch_up();

  /// For lanes whose operations overlap. One span lasts from a begin() with none in flight to the
  /// end() that leaves none; its detail is the sum of theirs.
  void begin(Lane lane, Activity activity, std::int64_t detail);
  void end(Lane lane);

  /// With a device, also compares the clocks again.
  void begin_step(std::int64_t step);
  /// Adds up the step, once the device has finished it, and records it as a span around all others.
  void end_step();

  /// Records the current reading of the GPU's sensors. For the computing thread.
  void record_gpu(std::optional<double> watts, std::optional<double> busy_percent) {
    gpu_samples_.push({now(), watts, busy_percent});
  }
  [[nodiscard]] const Ring<GpuSample>& gpu_samples() const { return gpu_samples_; }

  /// Returns the kept spans of a lane, oldest first.
  [[nodiscard]] std::vector<Span> spans(Lane lane) const;
  /// Returns how many older spans were dropped.
  [[nodiscard]] std::int64_t spans_lost(Lane lane) const;
  [[nodiscard]] const Ring<StepTimes>& steps() const { return steps_; }
  /// Returns the sum of all steps so far; `step` is their number.
  [[nodiscard]] const StepTimes& total() const { return total_; }

 private:
  /// A span that the device may not have finished.
  struct Pending {
    Launched launched;
    Stamp end;
    std::int64_t comparison;  ///< number of the clock comparison that its times use
  };
  struct LaneSpans {
    explicit LaneSpans(std::size_t capacity) : kept(capacity) { in_step.reserve(capacity + 1); }
    Ring<Span> kept;
    int under_way = 0;          ///< operations between begin() and end()
    Span open{};                ///< their span
    std::vector<Span> in_step;  ///< reserved for add_up()
    std::deque<Pending> pending;
    std::int64_t comparison = 0;  ///< of the last span
    double floor = 0;  ///< no span may begin earlier: the end of the spans before `comparison`
  };
  LaneSpans& of(Lane lane) { return lanes_[static_cast<std::size_t>(lane)]; }
  [[nodiscard]] const LaneSpans& of(Lane lane) const {
    return lanes_[static_cast<std::size_t>(lane)];
  }
  // With mutex_ held.
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
  mutable std::mutex mutex_;  // guards the lanes and the pending spans
  std::vector<LaneSpans> lanes_;
  std::int64_t comparison_ = 0;
  std::size_t pending_ = 0;       ///< pending spans of all lanes
  std::size_t pending_most_ = 0;  ///< at this number, check which are done
  Ring<StepTimes> steps_;
  Ring<GpuSample> gpu_samples_;
  StepTimes total_;
  std::int64_t step_ = 0;
  double step_begin_ = 0;
  Stamp step_stamp_ = 0;
};

}  // namespace dstrain::profile
