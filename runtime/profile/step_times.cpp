#include "runtime/profile/step_times.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/profile/intervals.h"

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

namespace {

OptimizerTimes add_up_optimizer(const StepSpans& step) {
  OptimizerTimes times;
  for (const auto& lane : {step.compute, step.host}) {
    for (const Span& span : lane) {
      if (span.activity == Activity::update) times.update += span.seconds();
      if (span.activity != Activity::optimizer_step) continue;
      times.seconds += span.seconds();
      times.reading += seconds_within(span, step.reads);
      times.writing += seconds_within(span, step.writes);
    }
  }
  return times;
}

}  // namespace

StepTimes add_up(const StepSpans& step) {
  const Intervals work = unite(work_of(step.compute), work_of(step.host));
  const Intervals collectives =
      unite(collectives_of(step.communication), collectives_of(step.host));
  StepTimes times;
  times.compute = seconds_of(work);
  times.communication = seconds_of(collectives);
  times.exposed = std::max(0.0, times.communication - seconds_in_both(work, collectives));
  times.optimizer = add_up_optimizer(step);
  return times;
}

}  // namespace dstrain::profile
