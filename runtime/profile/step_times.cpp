#include "runtime/profile/step_times.h"

#include <algorithm>

#include <fmt/format.h>

namespace dstrain::profile {

OptimizerTimes& OptimizerTimes::operator+=(const OptimizerTimes& other) {
  seconds += other.seconds;
  update += other.update;
  reading += other.reading;
  writing += other.writing;
  return *this;
}

StepTimes& StepTimes::operator+=(const StepTimes& other) {
  seconds += other.seconds;
  compute += other.compute;
  communication += other.communication;
  exposed += other.exposed;
  reading += other.reading;
  writing += other.writing;
  early_updates += other.early_updates;
  optimizer += other.optimizer;
  return *this;
}

std::string describe(const StepTimes& sum, std::int64_t count) {
  const double scale = 1e3 / static_cast<double>(count);
  std::string text = fmt::format(
      "compute {:.0f} ms, communication {:.0f} ms ({:.0f} ms exposed), optimizer step {:.0f} ms",
      sum.compute * scale, sum.communication * scale, sum.exposed * scale,
      sum.optimizer.seconds * scale);
  if (sum.reading == 0 && sum.writing == 0) return text;
  text += fmt::format(" (update {:.0f} ms, disk reads {:.0f} ms, writes {:.0f} ms)",
                      sum.optimizer.update * scale, sum.optimizer.reading * scale,
                      sum.optimizer.writing * scale);
  if (sum.early_updates == 0) return text;
  return text + fmt::format(
                    ", early updates {:.0f} ms (disk reads {:.0f} ms, writes {:.0f} ms of "
                    "the whole step)",
                    sum.early_updates * scale, sum.reading * scale, sum.writing * scale);
}

double seconds_within(const Span& whole, std::span<const Span> spans) {
  double seconds = 0;
  for (const Span& span : spans) {
    if (span.begin >= whole.end) break;
    seconds += std::max(0.0, std::min(whole.end, span.end) - std::max(whole.begin, span.begin));
  }
  return seconds;
}

StepTimes add_up(std::span<const Span> compute, std::span<const Span> communication) {
  StepTimes times;
  double hidden = 0;
  auto later = communication;  // what may still overlap
  const auto add = [&](const Span& span, double sign) {
    times.compute += sign * span.seconds();
    hidden += sign * seconds_within(span, later);
  };
  for (std::size_t i = 0; i < compute.size(); ++i) {
    const Span& work = compute[i];
    if (!is_work(work.activity)) continue;
    while (!later.empty() && later.front().end <= work.begin) later = later.subspan(1);
    add(work, 1);
    double end = work.end;  // of what is left of the work, from its end backwards
    for (std::size_t j = i; j-- > 0 && compute[j].begin >= work.begin;) {
      if (compute[j].activity != Activity::wait || compute[j].end > end) continue;
      add(compute[j], -1);
      end = compute[j].begin;
    }
  }
  for (const Span& span : communication) times.communication += span.seconds();
  times.exposed = std::max(0.0, times.communication - hidden);
  return times;
}

OptimizerTimes add_up_optimizer(std::span<const Span> compute,
                                std::span<const Span> reads,
                                std::span<const Span> writes) {
  OptimizerTimes times;
  for (const Span& span : compute) {
    if (span.activity == Activity::update) times.update += span.seconds();
    if (span.activity != Activity::optimizer_step) continue;
    times.seconds += span.seconds();
    times.reading += seconds_within(span, reads);
    times.writing += seconds_within(span, writes);
  }
  return times;
}

}  // namespace dstrain::profile
