#pragma once
#include <map>
#include <mutex>

#include "runtime/device/memory_resource.h"

namespace dstrain::test {

/// Host memory that knows what it has handed out.
class RecordingMemory final : public MemoryResource {
 public:
  [[nodiscard]] Device device() const noexcept override { return {}; }
  std::byte* allocate(Bytes bytes, StreamView stream) override {
    std::byte* const address = upstream_.allocate(bytes, stream);
    const std::lock_guard lock(mutex_);
    blocks_[address] = bytes;
    return address;
  }
  void deallocate(std::byte* address, Bytes bytes, StreamView stream) noexcept override {
    {
      const std::lock_guard lock(mutex_);
      blocks_.erase(address);
    }
    upstream_.deallocate(address, bytes, stream);
  }

  /// Whether so many bytes lie in one block that is in use.
  [[nodiscard]] bool holds(const std::byte* address, Bytes bytes) const {
    const std::lock_guard lock(mutex_);
    auto after = blocks_.upper_bound(const_cast<std::byte*>(address));
    if (after == blocks_.begin()) return false;
    const auto& [begin, size] = *--after;
    return address + bytes <= begin + size;
  }

 private:
  HostMemory upstream_;
  mutable std::mutex mutex_;
  std::map<std::byte*, Bytes> blocks_;
};

}  // namespace dstrain::test
