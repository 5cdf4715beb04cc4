#pragma once
#include <cstddef>

namespace dstrain::stand_in {

/// Memory of the device: full of NaNs, at a multiple of 256, and out of reach unless the device
/// works. Beside it lie pages that nothing reaches, that behind it where the last of its 256 bytes
/// end. A process that reaches for what it may not says so and ends. Null: there is no more.
void* take_memory(std::size_t bytes);
/// Ends the program where a byte beside those that were taken was written.
void give_back_memory(void* address);
[[nodiscard]] bool is_device_memory(const void* address);
/// What was taken and not given back.
[[nodiscard]] std::size_t taken_memory();

/// Of a thread that does work of the device. What it touches all threads of the process reach until
/// none has access any more: what protects pages knows no threads.
class MemoryAccess {
 public:
  MemoryAccess();
  MemoryAccess(const MemoryAccess&) = delete;
  MemoryAccess& operator=(const MemoryAccess&) = delete;
  MemoryAccess(MemoryAccess&&) = delete;
  MemoryAccess& operator=(MemoryAccess&&) = delete;
  ~MemoryAccess();
};

/// The thread has no access for a while, if it had.
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
