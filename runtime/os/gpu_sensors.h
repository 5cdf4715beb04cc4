#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace dstrain {

/// The sensor values of a GPU; none if the GPU or its driver does not report them.
struct GpuReading {
  std::optional<double> joules{};       ///< energy used since the driver was loaded
  std::optional<double> watts{};        ///< latest sample
  std::optional<double> watts_limit{};  ///< the clock slows down above it
  std::optional<int> busy_percent{};  ///< time in which any kernel ran, in the last second or less
  std::optional<int> celsius{};
  /// Memory errors that ECC could not correct since the driver was loaded.
  std::optional<std::int64_t> memory_errors{};
  bool slowed_by_heat = false;
  bool slowed_by_supply = false;  ///< slowed by the machine's power supply, not by the limit above
};

/// One GPU in NVIDIA's management library (NVML, libnvidia-ml.so.1), which comes with the driver.
/// Needs no context on the GPU. Any thread may read.
class GpuSensors {
 public:
  /// Returns all GPUs that the driver knows, in its order, which differs from that of
  /// CUDA_VISIBLE_DEVICES. The failure is the reason of the loader or the library.
  static Result<std::vector<GpuSensors>> all();
  /// Returns the GPU at this PCI bus id, "00000000:3b:00.0".
  static Result<GpuSensors> at(const std::string& bus_id);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] GpuReading read() const;

 private:
  friend class GpuErrorWatch;
  GpuSensors(void* device, std::string name) : device_(device), name_(std::move(name)) {}
  void* device_;
  std::string name_;
};

/// Receives the critical errors (Xid) that the driver reports for a GPU from now on.
class GpuErrorWatch {
 public:
  explicit GpuErrorWatch(const GpuSensors& gpu);
  GpuErrorWatch(const GpuErrorWatch&) = delete;
  GpuErrorWatch& operator=(const GpuErrorWatch&) = delete;
  GpuErrorWatch(GpuErrorWatch&&) = delete;
  GpuErrorWatch& operator=(GpuErrorWatch&&) = delete;
  ~GpuErrorWatch();
  /// Returns the numbers of new errors; if there are none, waits for the next one for at most
  /// `seconds`.
  [[nodiscard]] std::vector<std::uint64_t> take(double seconds);

 private:
  void* events_ = nullptr;  ///< null: the driver does not report them
};

/// Returns "Xid 79 (the GPU has fallen off the bus)", with a remedy if the GPU is at fault.
std::string describe_xid(std::uint64_t number);

}  // namespace dstrain
