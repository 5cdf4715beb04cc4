#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "runtime/profile/span.h"

namespace dstrain::profile {

/// Where the time of an optimizer step went, in seconds.
struct OptimizerTimes {
  double seconds = 0;  ///< of all of it
  double update = 0;   ///< updating parameters and states; waits for a disk not included
  double reading = 0;  ///< while a disk was being read
  double writing = 0;  ///< likewise

  OptimizerTimes& operator+=(const OptimizerTimes& other);
};

/// Where the time of one rank's step went, in seconds.
struct StepTimes {
  std::int64_t step = 0;
  double seconds = 0;        ///< of the whole step
  double compute = 0;        ///< units, norm, update
  double communication = 0;  ///< in collectives, waiting for other ranks there included
  /// Communication during which this rank computed nothing: what overlap could still hide.
  double exposed = 0;
  double reading = 0;        ///< while a disk was being read, for whatever
  double writing = 0;        ///< likewise
  double early_updates = 0;  ///< updating beside backward
  OptimizerTimes optimizer{};

  StepTimes& operator+=(const StepTimes& other);
};

/// "compute 812 ms, communication 95 ms (31 ms exposed), optimizer step 950 ms (update 90 ms, disk
/// reads 910 ms, writes 700 ms)": `sum` divided by `count`; nothing of disks where none is used.
/// Of early updates: ", early updates 90 ms (disk reads 800 ms, writes 810 ms of the whole step)".
std::string describe(const StepTimes& sum, std::int64_t count);

/// The spans of a step, those of one lane in order of their ends; work and communication are not
/// nested within their kind.
struct StepSpans {
  std::span<const Span> compute{};
  std::span<const Span> communication{};
  std::span<const Span> host{};  ///< beside a device
  // Of a disk they may reach beyond the step.
  std::span<const Span> reads{};
  std::span<const Span> writes{};
};

/// Adds up a step: the times between its begin and end, and what was read and written, are not in
/// it. Work counts, without the waits that it encloses, and collectives do: once where the device
/// and the host do so at a time.
StepTimes add_up(const StepSpans& step);

/// Seconds of `whole` in which one of `spans`, which are in order and do not overlap, was going on.
double seconds_within(const Span& whole, std::span<const Span> spans);

}  // namespace dstrain::profile
