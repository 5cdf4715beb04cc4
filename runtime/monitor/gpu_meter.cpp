#include "runtime/monitor/gpu_meter.h"

#include <algorithm>
#include <utility>

namespace dstrain::monitor {
namespace {

constexpr double seconds_between_readings = 1;

void add_to(std::optional<double>& sum, std::optional<double> number) {
  if (number) sum = sum.value_or(0) + *number;
}

}  // namespace

GpuLoad load_of_all(std::span<const GpuLoad> gpus) {
  GpuLoad all;
  int busy_told = 0;
  for (const GpuLoad& gpu : gpus) {
    add_to(all.watts, gpu.watts);
    add_to(all.busy_percent, gpu.busy_percent);
    busy_told += gpu.busy_percent ? 1 : 0;
    all.celsius = std::max(all.celsius, gpu.celsius);  // nothing is less than any number
  }
  if (busy_told > 0) *all.busy_percent /= busy_told;
  return all;
}

GpuMeter::GpuMeter(Read read, const Clock& clock) : read_(std::move(read)), clock_(clock) {
  load();
}

std::optional<GpuLoad> GpuMeter::load() {
  const double now = clock_.now_seconds();
  if (!read_ || (read_at_seconds_ && now - *read_at_seconds_ < seconds_between_readings)) {
    return load_;
  }
  const std::optional<GpuReading> reading = read_();
  if (!reading) {
    load_.reset();
    return load_;
  }
  load_ = GpuLoad{.watts = reading->watts, .celsius = reading->celsius};
  if (reading->busy_percent) load_->busy_percent = *reading->busy_percent;
  if (reading->joules && joules_) {
    load_->watts = (*reading->joules - *joules_) / (now - *read_at_seconds_);
  }
  joules_ = reading->joules;
  read_at_seconds_ = now;
  return load_;
}

}  // namespace dstrain::monitor
