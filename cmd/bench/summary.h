#pragma once
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/base/clock.h"
#include "runtime/base/function_ref.h"

namespace dstrain::bench {

/// How long something took, in seconds, over several runs.
struct Summary {
  double median = 0;
  double p5 = 0;  ///< a twentieth of the runs were at least as fast
  double p95 = 0;
};

/// Of at least one run.
Summary summarize(std::vector<double> seconds);

/// The median over the runs of ceiling / subject, both timed in the same run: what else the machine
/// does at that moment slows both.
double median_ratio(const std::vector<double>& ceiling, const std::vector<double>& subject);

/// {"median": ..., "p5": ..., "p95": ...}
nlohmann::json to_json(const Summary& summary);

/// Seconds that one call takes.
double time_of(const Clock& clock, FunctionRef<void()> body);

/// The processor's name as the system gives it, and how many of them there are.
std::string describe_machine();

}  // namespace dstrain::bench
