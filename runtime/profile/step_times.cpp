#include "runtime/profile/step_times.h"

#include <algorithm>

namespace dstrain::profile {

StepTimes& StepTimes::operator+=(const StepTimes& other) {
  seconds += other.seconds;
  compute += other.compute;
  communication += other.communication;
  exposed += other.exposed;
  return *this;
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
