#pragma once
#include <memory>
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

/// The calling thread's own time on a processor: on a busy machine, what the work costs and not how
/// long it waited. What other threads do is not in it.
class ThreadClock final : public Clock {
 public:
  [[nodiscard]] double now_seconds() const override;
};

/// The machine's clock, or the thread's.
std::unique_ptr<Clock> make_clock(bool cpu_time);

/// Seconds that one call takes.
double time_of(const Clock& clock, FunctionRef<void()> body);

/// The processor's name as the system gives it, and how many of them there are.
std::string describe_machine();

}  // namespace dstrain::bench
