#pragma once
#include "runtime/device/memory_resource.h"

namespace dstrain {

/// Memory of another resource that the system may not move or swap out (mlock), so that devices and
/// disks copy from and to it without staging. Throws Error{out_of_memory} if it cannot be locked.
class LockedMemory final : public MemoryResource {
 public:
  explicit LockedMemory(MemoryResource& upstream) : upstream_(upstream) {}
  [[nodiscard]] Device device() const noexcept override { return upstream_.device(); }
  std::byte* allocate(Bytes bytes, StreamView stream) override;
  void deallocate(std::byte* address, Bytes bytes, StreamView stream) noexcept override;

  /// Returns the most that this process may lock with its limits and rights.
  static Bytes allowed();

 private:
  MemoryResource& upstream_;
};

}  // namespace dstrain
