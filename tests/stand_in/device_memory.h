#pragma once
#include <cstddef>

namespace dstrain::stand_in {

/// Allocates device memory: filled with NaNs, aligned to 256 bytes, and accessible only to device
/// work. A guard page precedes it, and another follows its size rounded up to 256 bytes. A process
/// that violates this prints a message and aborts. Returns null if there is no memory left.
void* take_memory(std::size_t bytes);
/// Aborts if a byte beside the allocation was written.
void give_back_memory(void* address);
[[nodiscard]] bool is_device_memory(const void* address);
/// Bytes that are allocated.
[[nodiscard]] std::size_t taken_memory();

/// Gives a thread that does device work access to device memory. Pages that it touches stay
/// accessible to all threads of the process until no thread has access, because page protection is
/// per process.
class MemoryAccess {
 public:
  MemoryAccess();
  MemoryAccess(const MemoryAccess&) = delete;
  MemoryAccess& operator=(const MemoryAccess&) = delete;
  MemoryAccess(MemoryAccess&&) = delete;
  MemoryAccess& operator=(MemoryAccess&&) = delete;
  ~MemoryAccess();
};

/// Suspends the thread's access, if it has any.
class MemoryAccessPause {
 public:
  MemoryAccessPause();
  MemoryAccessPause(const MemoryAccessPause&) = delete;
  MemoryAccessPause& operator=(const MemoryAccessPause&) = delete;
  MemoryAccessPause(MemoryAccessPause&&) = delete;
  MemoryAccessPause& operator=(MemoryAccessPause&&) = delete;
  ~MemoryAccessPause();

 private:
  bool had_;
};

}  // namespace dstrain::stand_in
