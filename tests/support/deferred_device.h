#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/cpu_stream.h"
#include "runtime/device/memory_resource.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::test {

/// A device with memory that the host cannot reach and streams that run when they like: what is
/// wrong with the order of a program, or touches the device's memory past its ops, shows on it
/// without a GPU. It goes by DeviceKind::cuda. Its memory has two places: the addresses that the
/// program sees, which nobody can read or write, and others, which the device's ops use. Fresh and
/// freed memory is full of NaNs. One thread, with its team of compute threads, runs what was
/// launched, an op at a time, in any order that streams and events allow, now at once, now when the
/// host waits for it or has gone on for a while, as the seed has it. Streams and memory must be
/// gone before the device.
class DeferredDevice {
 public:
  explicit DeferredDevice(std::uint64_t seed, Bytes memory = 256 * mebibyte);
  DeferredDevice(const DeferredDevice&) = delete;
  DeferredDevice& operator=(const DeferredDevice&) = delete;
  DeferredDevice(DeferredDevice&&) = delete;
  DeferredDevice& operator=(DeferredDevice&&) = delete;
  ~DeferredDevice();

  [[nodiscard]] MemoryResource& memory();
  /// `name`: by which its waits are told apart.
  [[nodiscard]] std::unique_ptr<Stream> make_stream(std::string name = "stream");

  /// A wait of one of the device's streams for another or for the host, or of the host for one of
  /// them, for a point or for all it was given.
  struct Wait {
    std::string name;  ///< who waits for whom, after which op of that
    int number = 0;    ///< of those with that name, from 0
    friend bool operator==(const Wait&, const Wait&) = default;
  };
  /// Notes waits from here on. `dropped` does not happen, and for `late_ms` milliseconds what it
  /// would have waited for does not either: an order that no other wait makes is lost.
  void note_waits(const Wait& dropped, int late_ms);
  /// Ends that; returns them in the order in which they came.
  std::vector<Wait> end_note();

  /// What an op of the CPU does in place of the device's.
  using Task = std::function<void(CpuStream& here)>;
  /// Launches `task`, which does `op`, on `stream`, which is one of a deferred device.
  static void launch(StreamView stream, std::string_view op, Task task);
  /// A view of a deferred device's memory as its ops see it: as one of the CPU. Throws
  /// Error{internal} for memory of the host.
  static TensorView translated(const TensorView& view, StreamView stream);

 private:
  class Core;
  class Memory;
  class Point;
  class DeferredStream;
  static DeferredStream& stream_of(StreamView stream);

  std::shared_ptr<Core> core_;  // shared with gates that the host opens
  std::unique_ptr<Memory> memory_;
};

}  // namespace dstrain::test
