#pragma once
#include <map>
#include <mutex>

#include "runtime/device/memory_resource.h"

namespace dstrain::cuda {

/// Memory of one GPU. Each allocation is a cudaMalloc; all are made once, before the first step.
class DeviceMemory final : public MemoryResource {
 public:
  DeviceMemory(Device device, int ordinal) : device_(device), ordinal_(ordinal) {}
  [[nodiscard]] Device device() const noexcept override { return device_; }
  std::byte* allocate(Bytes bytes, StreamView stream) override;
  void deallocate(std::byte* address, Bytes bytes, StreamView stream) noexcept override;

 private:
  Device device_;
  int ordinal_;
};

/// Host memory that GPUs copy from and to without staging: pages of another resource, registered
/// with CUDA.
class PinnedMemory final : public MemoryResource {
 public:
  PinnedMemory(MemoryResource& upstream, int ordinal) : upstream_(upstream), ordinal_(ordinal) {}
  [[nodiscard]] Device device() const noexcept override { return upstream_.device(); }
  std::byte* allocate(Bytes bytes, StreamView stream) override;
  void deallocate(std::byte* address, Bytes bytes, StreamView stream) noexcept override;

 private:
  /// The upstream allocation behind an address.
  struct Taken {
    std::byte* address;
    Bytes bytes;
  };
  MemoryResource& upstream_;
  int ordinal_;
  std::mutex mutex_;
  std::map<std::byte*, Taken> taken_;
};

}  // namespace dstrain::cuda
