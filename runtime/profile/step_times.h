#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "runtime/profile/span.h"

namespace dstrain::profile {

/// Where the time of one rank's step went, in seconds.
struct StepTimes {
  std::int64_t step = 0;
  double seconds = 0;        ///< of the whole step
  double compute = 0;        ///< units, norm, update
  double communication = 0;  ///< in collectives, waiting for other ranks there included
  /// Communication during which this rank computed nothing: what overlap could still hide.
  double exposed = 0;

  StepTimes& operator+=(const StepTimes& other);
};

/// "compute 812 ms, communication 95 ms (31 ms exposed)": `sum` divided by `count`.
std::string describe(const StepTimes& sum, std::int64_t count);

/// Adds up a step. Spans of one lane are in order of their ends; work and communication are not
/// nested within their kind. Of `compute` work counts, without the waits that it encloses.
StepTimes add_up(std::span<const Span> compute, std::span<const Span> communication);

}  // namespace dstrain::profile
