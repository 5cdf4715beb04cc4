#pragma once
#include <functional>
#include <optional>
#include <span>

#include "runtime/base/clock.h"
#include "runtime/os/gpu_sensors.h"

namespace dstrain::monitor {

/// What GPUs do, as far as they tell.
struct GpuLoad {
  std::optional<double> watts{};         ///< of all together
  std::optional<double> busy_percent{};  ///< of the last second or less; the mean
  std::optional<double> celsius{};       ///< of the hottest
};

/// Of several GPUs, from each one's own.
GpuLoad load_of_all(std::span<const GpuLoad> gpus);

/// Reads the sensors of one GPU, at most once a second: that takes the driver up to milliseconds.
class GpuMeter {
 public:
  using Read = std::function<std::optional<GpuReading>()>;
  /// `read` may be null: there is no GPU. The clock must outlive it.
  GpuMeter(Read read, const Clock& clock);
  /// None: nobody tells. Watts are the mean since the reading before, where the GPU counts energy.
  std::optional<GpuLoad> load();

 private:
  Read read_;
  const Clock& clock_;
  std::optional<double> read_at_seconds_;
  std::optional<double> joules_;
  std::optional<GpuLoad> load_;
};

}  // namespace dstrain::monitor
