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

/// What a kind of device brings: memory, streams, ops and collectives. The CPU's is built in
/// (cpu_backend.h), another's lies in a plug-in (open_backend.h). One per process, which the thread
/// that computes uses. Streams and memory that it has made must be gone before it.
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
  /// What is free of it now; 0: not known.
  [[nodiscard]] virtual Bytes free_memory() { return 0; }
  /// Memory of `host` that the device copies from and to without staging. By default it is locked.
  [[nodiscard]] virtual std::unique_ptr<MemoryResource> pinned(MemoryResource& host);

  /// What its sensors say; none where it has none, or where another rank of this machine computes
  /// on it, too, and tells.
  [[nodiscard]] virtual std::optional<GpuReading> read_sensors() { return {}; }

  /// What a stream is for: computing, or what runs beside it.
  enum class StreamUse { computing, beside_computing };
  [[nodiscard]] virtual std::unique_ptr<Stream> make_stream(StreamUse use) = 0;
  /// Matrix products of f32 by f32 that are launched on `stream` from now on are computed in TF32,
  /// which rounds what is multiplied to 10 bits of mantissa and adds up in f32, where the device
  /// has it. By default nothing has.
  virtual void use_tf32(StreamView /*stream*/) {}

  // Algorithms of matrix products, where the device has several. By default it has none to choose
  // between.

  /// Times the algorithms that the device has for each product that was launched on `stream`, while
  /// nothing else should run, and returns which is the fastest, as JSON of one line; empty: there
  /// is nothing to choose. Takes up to `room` bytes of the device meanwhile, beside what any plan
  /// counts; a product that gets less is left out. Waits for the stream.
  [[nodiscard]] virtual std::string tune_products(StreamView stream, Bytes room);
  /// Products that are launched on `stream` from now on take the algorithms of such a text, of
  /// whatever rank and run; those that are not in it take the device's own choice. Returns why the
  /// text is of no use here; empty: it is.
  [[nodiscard]] virtual std::string use_algorithms(const std::string& text, StreamView stream);
  struct ProductCount {
    std::int64_t all = 0;
    std::int64_t chosen = 0;  ///< whose algorithm use_algorithms() has set
  };
  /// Of the products that were launched on `stream`.
  [[nodiscard]] virtual ProductCount count_products(StreamView /*stream*/) { return {}; }
  /// Tells by `host`, which must outlive it, when the device does what its streams are given. Null,
  /// as by default: only the host's clock tells, which is that of streams of the host.
  [[nodiscard]] virtual std::unique_ptr<StreamClock> make_stream_clock(const Clock& host);
  /// The profiler that watches this process; its ops show themselves. Null, as by default: none is
  /// there. Outlives the backend.
  [[nodiscard]] virtual HostRanges* host_ranges() { return nullptr; }

  /// How the ranks reach each other before their devices do.
  struct HostSide {
    std::unique_ptr<comm::Communicator> communicator;  ///< of the host's memory
    comm::ControlGroup& control;                       ///< of the same ranks
    MemoryResource& staging;                           ///< of the host
    double timeout_seconds = 600;  ///< of connecting, and of each wait of a collective
  };
  /// Collectives of the device's tensors among these ranks. By default they go through the host's
  /// communicator, by a block of `staging`; a device that a library connects has a communicator of
  /// its own, which keeps the host's, for its memory. Collective.
  [[nodiscard]] virtual std::unique_ptr<comm::Communicator> connect(HostSide host);
  /// Of such a block.
  static constexpr Bytes staging_bytes = 16 * mebibyte;

 private:
  Device device_;
};

/// What the plug-in of a kind of device, libdstrain_cuda.so, exports as `backend_symbol`.
struct BackendEntry {
  const char* version;  ///< of the dstrain that it was built with; read before all else
  /// Starts the device. Throws Error for one that does not start.
  std::unique_ptr<Backend> (*start)(Device device);
};
inline constexpr const char* backend_symbol = "dstrain_backend";
/// A function of that name, extern "C".
using BackendFunction = BackendEntry();

}  // namespace dstrain
