#pragma once
#include <cstdint>

namespace dstrain {

/// A device vendor's profiler, which shows what host threads do next to what the device does.
/// Thread-safe.
class HostRanges {
 public:
  HostRanges() = default;
  HostRanges(const HostRanges&) = delete;
  HostRanges& operator=(const HostRanges&) = delete;
  HostRanges(HostRanges&&) = delete;
  HostRanges& operator=(HostRanges&&) = delete;
  virtual ~HostRanges() = default;

  /// Begins a range of the calling thread, nested in its open ranges.
  virtual void push(const char* name) noexcept = 0;
  /// Ends the calling thread's innermost range.
  virtual void pop() noexcept = 0;

  using Id = std::uint64_t;
  /// Begins a range that need not nest in the ranges of any thread.
  virtual Id begin(const char* name) noexcept = 0;
  virtual void end(Id range) noexcept = 0;
};

}  // namespace dstrain
