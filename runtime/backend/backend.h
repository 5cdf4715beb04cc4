#pragma once
#include <memory>

#include "runtime/base/clock.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/control/control_group.h"
#include "runtime/device/memory_resource.h"
#include "runtime/device/stream.h"
#include "runtime/device/stream_clock.h"
#include "runtime/ops/op_table.h"

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

  /// What a stream is for: computing, or what runs beside it.
  enum class StreamUse { computing, beside_computing };
  [[nodiscard]] virtual std::unique_ptr<Stream> make_stream(StreamUse use) = 0;
  /// Tells by `host`, which must outlive it, when the device does what its streams are given. Null,
  /// as by default: only the host's clock tells, which is that of streams of the host.
  [[nodiscard]] virtual std::unique_ptr<StreamClock> make_stream_clock(const Clock& host);

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
