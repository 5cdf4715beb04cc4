#pragma once
#include <filesystem>

#include "runtime/device/memory_resource.h"

namespace dstrain::offload {

/// Memory mapped to unnamed files in a directory. It may exceed the machine's memory, because the
/// system writes pages out under memory pressure. Reads as zeros at first. Throws Error{io} as
/// SwapFile does.
class MappedMemory final : public MemoryResource {
 public:
  explicit MappedMemory(std::filesystem::path directory) : directory_(std::move(directory)) {}
  [[nodiscard]] Device device() const noexcept override { return {}; }
  std::byte* allocate(Bytes bytes, StreamView stream) override;
  void deallocate(std::byte* address, Bytes bytes, StreamView stream) noexcept override;

 private:
  std::filesystem::path directory_;
};

}  // namespace dstrain::offload
