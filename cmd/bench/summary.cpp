#include "cmd/bench/summary.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>

#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"

namespace dstrain::bench {
namespace {

/// The value below which a share of the sorted ones lies, between the two nearest.
double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], at - std::floor(at));
}

}  // namespace

Summary summarize(std::vector<double> seconds) {
  DSTRAIN_CHECK(!seconds.empty(), "no runs");
  std::ranges::sort(seconds);
  return {quantile(seconds, 0.5), quantile(seconds, 0.05), quantile(seconds, 0.95)};
}

double median_ratio(const std::vector<double>& ceiling, const std::vector<double>& subject) {
  DSTRAIN_CHECK(ceiling.size() == subject.size(), "{} and {} runs", ceiling.size(), subject.size());
  std::vector<double> ratios;
  for (std::size_t i = 0; i < subject.size(); ++i) ratios.push_back(ceiling[i] / subject[i]);
  return summarize(std::move(ratios)).median;
}

nlohmann::json to_json(const Summary& summary) {
  return {{"median", summary.median}, {"p5", summary.p5}, {"p95", summary.p95}};
}

double ThreadClock::now_seconds() const {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::unique_ptr<Clock> make_clock(bool cpu_time) {
  if (cpu_time) return std::make_unique<ThreadClock>();
  return std::make_unique<SteadyClock>();
}

double time_of(const Clock& clock, FunctionRef<void()> body) {
  const double begin = clock.now_seconds();
  body();
  return clock.now_seconds() - begin;
}

std::string describe_machine() {
  std::ifstream file("/proc/cpuinfo");
  std::string name = "unknown processor";
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    name = line.substr(std::min(line.find(": "), line.size() - 2) + 2);
    break;
  }
  return fmt::format("{} x {}", ::sysconf(_SC_NPROCESSORS_ONLN), name);
}

}  // namespace dstrain::bench
