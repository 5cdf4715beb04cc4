#pragma once
#include <filesystem>

#include "runtime/device/memory_resource.h"

namespace dstrain::offload {

/// Memory that lies in nameless files of a directory: what it holds need not fit into the machine,
/// as the system writes it out when it wants the pages. Reads as zeros at first. Throws Error{io}
/// as SwapFile does.
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
