#pragma once
#include <cstdint>

namespace dstrain {

/// A profiler of a device's vendor, which shows what threads of the host do beside what the device
/// does. Thread-safe.
class HostRanges {
 public:
  HostRanges() = default;
  HostRanges(const HostRanges&) = delete;
  HostRanges& operator=(const HostRanges&) = delete;
  HostRanges(HostRanges&&) = delete;
  HostRanges& operator=(HostRanges&&) = delete;
  virtual ~HostRanges() = default;

  /// The calling thread begins something of this name, within what it has begun before.
  virtual void push(const char* name) noexcept = 0;
  /// It ends what it began last.
  virtual void pop() noexcept = 0;

  using Id = std::uint64_t;
  /// Something begins that no thread's other ranges need to enclose.
  virtual Id begin(const char* name) noexcept = 0;
  virtual void end(Id range) noexcept = 0;
};

}  // namespace dstrain
