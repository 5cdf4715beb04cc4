#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "runtime/profile/span.h"

namespace dstrain::profile {

/// Where the time of an optimizer step went, in seconds.
struct OptimizerTimes {
  double seconds = 0;  ///< in total
  double update = 0;   ///< updating parameters and states, without waits for a disk
  double reading = 0;  ///< while a disk was being read
  double writing = 0;  ///< likewise

  OptimizerTimes& operator+=(const OptimizerTimes& other);
};

/// Where the time of one rank's step went, in seconds.
struct StepTimes {
  std::int64_t step = 0;
  double seconds = 0;        ///< of the whole step
  double compute = 0;        ///< units, norm, update
  double communication = 0;  ///< in collectives, including waits for other ranks
  /// Communication during which this rank computed nothing: what overlap could still hide.
  double exposed = 0;
  double reading = 0;        ///< while a disk was being read, for any purpose
  double writing = 0;        ///< likewise
  double early_updates = 0;  ///< updates during backward
  OptimizerTimes optimizer{};

  StepTimes& operator+=(const StepTimes& other);
};

/// Returns the means `sum` / `count` as "compute 812 ms, communication 95 ms (31 ms exposed),
/// optimizer step 950 ms (update 90 ms, disk reads 910 ms, writes 700 ms)", without the disks if
/// none is used. Early updates add ", early updates 90 ms (disk reads 800 ms, writes 810 ms of the
/// whole step)".
std::string describe(const StepTimes& sum, std::int64_t count);

/// The spans of a step. Those of a lane are in order of their ends. Work is not nested in work, nor
/// communication in communication.
struct StepSpans {
  std::span<const Span> compute{};
  std::span<const Span> communication{};
  std::span<const Span> host{};  ///< if a device computes
  // Disk spans may reach beyond the step.
  std::span<const Span> reads{};
  std::span<const Span> writes{};
};

/// Adds up work and collectives of a step, without the waits enclosed in work. Time in which device
/// and host do so at once counts once. The step's own duration and its disk times are left out.
StepTimes add_up(const StepSpans& step);

/// Returns the seconds of `whole` covered by `spans`, which are sorted and do not overlap.
double seconds_within(const Span& whole, std::span<const Span> spans);

}  // namespace dstrain::profile
