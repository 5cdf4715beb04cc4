#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace dstrain {

/// What the sensors of a GPU say. None where the GPU or its driver does not tell.
struct GpuReading {
  std::optional<double> joules{};       ///< taken since the driver was loaded
  std::optional<double> watts{};        ///< a moment ago
  std::optional<double> watts_limit{};  ///< above which its clock slows down
  std::optional<int> busy_percent{};    ///< of the last second or less, in which any kernel ran
  std::optional<int> celsius{};
  /// Memory errors that ECC could not correct, since the driver was loaded.
  std::optional<std::int64_t> memory_errors{};
  bool slowed_by_heat = false;
  bool slowed_by_supply = false;  ///< the machine's, not the limit above
};

/// One GPU by NVIDIA's management library (NVML, libnvidia-ml.so.1), which comes with the driver.
/// Needs no context on the GPU. Any thread may read.
class GpuSensors {
 public:
  /// All that the driver knows, in its order, which is not that of CUDA_VISIBLE_DEVICES. The
  /// failure is the loader's reason, or the library's.
  static Result<std::vector<GpuSensors>> all();
  /// The one at this place of the PCI bus, as "00000000:3b:00.0".
  static Result<GpuSensors> at(const std::string& bus_id);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] GpuReading read() const;

 private:
  friend class GpuErrorWatch;
  GpuSensors(void* device, std::string name) : device_(device), name_(std::move(name)) {}
  void* device_;
  std::string name_;
};

/// Hears of the critical errors (Xid) that the driver reports of a GPU from now on.
class GpuErrorWatch {
 public:
  explicit GpuErrorWatch(const GpuSensors& gpu);
  GpuErrorWatch(const GpuErrorWatch&) = delete;
  GpuErrorWatch& operator=(const GpuErrorWatch&) = delete;
  GpuErrorWatch(GpuErrorWatch&&) = delete;
  GpuErrorWatch& operator=(GpuErrorWatch&&) = delete;
  ~GpuErrorWatch();
  /// The numbers of those that have not been returned yet, and of the next that comes within
  /// `seconds` if there is none.
  [[nodiscard]] std::vector<std::uint64_t> take(double seconds);

 private:
  void* events_ = nullptr;  ///< null: the driver reports none
};

/// "Xid 79 (the GPU has fallen off the bus)", with what to do where the GPU is at fault.
std::string describe_xid(std::uint64_t number);

}  // namespace dstrain
