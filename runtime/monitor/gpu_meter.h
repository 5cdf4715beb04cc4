#pragma once
#include <functional>
#include <optional>
#include <span>

#include "runtime/base/clock.h"
#include "runtime/os/gpu_sensors.h"

namespace dstrain::monitor {

/// The load of one GPU or several, as far as their sensors report it.
struct GpuLoad {
  std::optional<double> watts{};         ///< sum
  std::optional<double> busy_percent{};  ///< mean, over the last second or less
  std::optional<double> celsius{};       ///< of the hottest GPU
};

/// Combines the loads of several GPUs.
GpuLoad load_of_all(std::span<const GpuLoad> gpus);

/// Reads the sensors of one GPU, at most once a second, because a reading can take the driver
/// milliseconds.
class GpuMeter {
 public:
  using Read = std::function<std::optional<GpuReading>()>;
  /// `read` may be null: there is no GPU. The clock must outlive the meter.
  GpuMeter(Read read, const Clock& clock);
  /// Nothing if there is no reading. If the GPU counts energy, watts are the mean since the
  /// previous reading.
  std::optional<GpuLoad> load();

 private:
  Read read_;
  const Clock& clock_;
  std::optional<double> read_at_seconds_;
  std::optional<double> joules_;
  std::optional<GpuLoad> load_;
};

}  // namespace dstrain::monitor
