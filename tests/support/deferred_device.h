#pragma once
#include <functional>
#include <memory>

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
  [[nodiscard]] std::unique_ptr<Stream> make_stream();

  /// Waits for points are counted from here on: of the device's streams for each other and for the
  /// host, and of the host. That of number `dropped`, from 0, does not happen, and for `late_ms`
  /// milliseconds what it would have waited for does not either: an order that no other wait makes
  /// is lost.
  void count_waits(std::int64_t dropped, int late_ms);
  static constexpr std::int64_t none_dropped = -1;
  /// Ends that; returns how many there were.
  std::int64_t end_count();

  /// What an op of the CPU does in place of the device's.
  using Task = std::function<void(CpuStream& here)>;
  /// Launches `task` on `stream`, which is one of a deferred device.
  static void launch(StreamView stream, Task task);
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
