#include "runtime/profile/step_times.h"

#include <algorithm>

#include <fmt/format.h>

namespace dstrain::profile {

StepTimes& StepTimes::operator+=(const StepTimes& other) {
  seconds += other.seconds;
  compute += other.compute;
  communication += other.communication;
  exposed += other.exposed;
  return *this;
}

std::string describe(const StepTimes& sum, std::int64_t count) {
  const double scale = 1e3 / static_cast<double>(count);
  return fmt::format("compute {:.0f} ms, communication {:.0f} ms ({:.0f} ms exposed)",
                     sum.compute * scale, sum.communication * scale, sum.exposed * scale);
}

StepTimes add_up(std::span<const Span> compute, std::span<const Span> communication) {
  StepTimes times;
  double hidden = 0;
  std::size_t next = 0;  // the first communication that may still overlap
  for (const Span& work : compute) {
    if (!is_work(work.activity)) continue;
    times.compute += work.seconds();
    while (next < communication.size() && communication[next].end <= work.begin) ++next;
    for (std::size_t i = next; i < communication.size() && communication[i].begin < work.end; ++i) {
      hidden +=
          std::min(work.end, communication[i].end) - std::max(work.begin, communication[i].begin);
    }
  }
  for (const Span& span : communication) times.communication += span.seconds();
  times.exposed = std::max(0.0, times.communication - hidden);
  return times;
}

}  // namespace dstrain::profile
