#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/control/control_group.h"
#include "runtime/device/host_ranges.h"
#include "runtime/device/memory_resource.h"
#include "runtime/device/stream.h"
#include "runtime/device/stream_clock.h"
#include "runtime/ops/op_table.h"
#include "runtime/os/gpu_sensors.h"

namespace dstrain {

/// Provides memory, streams, ops and collectives of one kind of device. The CPU's backend is built
/// in (cpu_backend.h); others come from plug-ins (open_backend.h). A process has one, used by the
/// computing thread. Destroy its streams and memory before it.
class Backend {
 public:
  explicit Backend(Device device) : device_(device) {}
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  Backend(Backend&&) = delete;
  Backend& operator=(Backend&&) = delete;
  virtual ~Backend() = default;

  [[nodiscard]] Device device() const noexcept { return device_; }
  /// The ops that launch on its streams. They outlive the backend.
  [[nodiscard]] virtual const ops::OpTable& op_table() const = 0;
  /// Memory of the device.
  [[nodiscard]] virtual MemoryResource& memory() = 0;
  /// Returns the bytes that are free on the device now; 0: not known.
  [[nodiscard]] virtual Bytes free_memory() { return 0; }
  /// Returns host memory that the device copies from and to without staging. Default: locked
  /// memory.
  [[nodiscard]] virtual std::unique_ptr<MemoryResource> pinned(MemoryResource& host);

  /// Reads the device's sensors. Nothing if it has none, or if another rank of this machine
  /// computes on the same device and reports them.
  [[nodiscard]] virtual std::optional<GpuReading> read_sensors() { return {}; }

  /// Computing, or work that runs beside it.
  enum class StreamUse { computing, beside_computing };
  [[nodiscard]] virtual std::unique_ptr<Stream> make_stream(StreamUse use) = 0;
  /// Computes f32 matrix products launched on `stream` from now on in TF32, if the device has it:
  /// factors are rounded to 10 bits of mantissa, sums are f32. Does nothing by default.
  virtual void use_tf32(StreamView /*stream*/) {}

  // Algorithms of matrix products. By default a device has none to choose between.

  /// Times the device's algorithms for each product that was launched on `stream`; nothing else
  /// should run meanwhile. Returns the fastest ones as one line of JSON; empty: there is no choice.
  /// Takes up to `room` bytes of the device, which no plan counts, and leaves out products that
  /// need more. Waits for the stream.
  [[nodiscard]] virtual std::string tune_products(StreamView stream, Bytes room);
  /// Makes products launched on `stream` from now on use the algorithms of such a text, from any
  /// rank and run. Products that are not in it use the device's own choice. Returns why the text
  /// cannot be used; empty: it can.
  [[nodiscard]] virtual std::string use_algorithms(const std::string& text, StreamView stream);
  struct ProductCount {
    std::int64_t all = 0;
    std::int64_t chosen = 0;  ///< products whose algorithm use_algorithms() has set
  };
  /// Counts the products that were launched on `stream`.
  [[nodiscard]] virtual ProductCount count_products(StreamView /*stream*/) { return {}; }
  /// Returns a clock that measures the streams' work in the time of `host`, which must outlive it.
  /// Null by default: then only the host's clock measures, which suits streams of the host.
  [[nodiscard]] virtual std::unique_ptr<StreamClock> make_stream_clock(const Clock& host);
  /// Returns the vendor's profiler that watches this process and shows the ops by itself; null (the
  /// default) if there is none. Outlives the backend.
  [[nodiscard]] virtual HostRanges* host_ranges() { return nullptr; }

  /// The host's connections between the ranks, which exist before those of the devices.
  struct HostSide {
    std::unique_ptr<comm::Communicator> communicator;  ///< for host memory
    comm::ControlGroup& control;                       ///< of the same ranks
    MemoryResource& staging;                           ///< host memory
    double timeout_seconds = 600;  ///< to connect, and of each wait of a collective
  };
  /// Returns a communicator of these ranks for the device's tensors. By default it goes through the
  /// host's communicator, in blocks of `staging`; a device with a library for collectives has its
  /// own communicator, which uses the host's for host memory. Collective.
  [[nodiscard]] virtual std::unique_ptr<comm::Communicator> connect(HostSide host);
  /// The size of such a block.
  static constexpr Bytes staging_bytes = 16 * mebibyte;

 private:
  Device device_;
};

/// What the plug-in of a device (libdstrain_cuda.so) exports as `backend_symbol`.
struct BackendEntry {
  const char* version;  ///< the dstrain it was built with; read before all else
  /// Starts the device. Throws Error if it does not start.
  std::unique_ptr<Backend> (*start)(Device device);
};
inline constexpr const char* backend_symbol = "dstrain_backend";
/// The type of that function, which is extern "C".
using BackendFunction = BackendEntry();

}  // namespace dstrain
