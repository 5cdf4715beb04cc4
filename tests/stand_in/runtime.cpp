// The functions of CUDA's run-time library that the plug-in calls, on the CPU, with the same
// reasons to block: each stream is a thread; every call holds one driver lock; the first launch of
// a kernel loads it, which waits under that lock until the device is idle, as does freeing memory.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <sstream>
#include <vector>

#include <cuda_runtime_api.h>

#include "tests/stand_in/device_memory.h"
#include "tests/stand_in/refusals.h"
#include "tests/stand_in/streams.h"

namespace {

using dstrain::stand_in::device;
using dstrain::stand_in::Driver;
using dstrain::stand_in::give_back_memory;
using dstrain::stand_in::is_device_memory;
using dstrain::stand_in::Moment;
using dstrain::stand_in::queue_of;
using dstrain::stand_in::refuses;
using dstrain::stand_in::take_memory;
using dstrain::stand_in::taken_memory;

/// The GPU that this process uses.
std::atomic<int> current_gpu = 0;

/// Device memory: 8 GiB, or for GPU k number k of DSTRAIN_STAND_IN_MEMORY, as in
/// "8000000000 1000000"; the last number also counts for further GPUs.
std::size_t memory_bytes() {
  std::size_t bytes = std::size_t{8} << 30;
  const char* const given = std::getenv("DSTRAIN_STAND_IN_MEMORY");
  std::istringstream numbers(given != nullptr ? given : "");
  for (int gpu = 0; gpu <= current_gpu && numbers >> bytes; ++gpu) {
  }
  return bytes;
}

/// DSTRAIN_STAND_IN_GPUS, by default one. Each process has its own memory and streams.
int gpus() {
  const char* const given = std::getenv("DSTRAIN_STAND_IN_GPUS");
  return given != nullptr ? std::atoi(given) : 1;
}

/// Registered host memory: sizes in bytes by address. Guarded by the driver lock.
std::map<const std::byte*, std::size_t>& registered() {
  static std::map<const std::byte*, std::size_t> ranges;
  return ranges;
}

cudaMemoryType type_of(const void* address) {
  if (is_device_memory(address)) return cudaMemoryTypeDevice;
  const auto* const at = static_cast<const std::byte*>(address);
  auto found = registered().upper_bound(at);
  if (found == registered().begin()) return cudaMemoryTypeUnregistered;
  --found;
  return at < found->first + found->second ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
}

/// The rate of the device clock relative to the host clock, because no two clocks agree.
constexpr double device_clock_rate = 1.0001;

struct Event {
  bool timed;
  std::shared_ptr<Moment> last{};  ///< null: it was never recorded
  [[nodiscard]] bool passed() const { return last == nullptr || last->reached; }
};
Event& event_of(cudaEvent_t event) {
  return *reinterpret_cast<Event*>(event);
}

/// The error of a call for which refuses() returned true.
cudaError_t refused() {
  return refuses("cudaErrorIllegalAddress") ? cudaErrorIllegalAddress : cudaErrorUnknown;
}

}  // namespace

extern "C" {

cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
const char* cudaGetErrorName(cudaError_t error) {
  if (error == cudaErrorIllegalAddress) return "cudaErrorIllegalAddress";
  if (error == cudaErrorMemoryAllocation) return "cudaErrorMemoryAllocation";
  return "an error of the stand-in";
}
const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorIllegalAddress) return "an illegal memory access";
  if (error == cudaErrorMemoryAllocation) return "out of memory";
  return "refused";
}
cudaError_t cudaGetDeviceCount(int* count) {
  if (refuses(__func__)) return refused();
  *count = gpus();
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int ordinal) {
  if (refuses(__func__)) return refused();
  *properties = {};
  std::strcpy(properties->name, "stand-in");
  properties->major = 9;
  properties->pciBusID = ordinal;
  properties->uuid.bytes[0] = static_cast<char>(ordinal);
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int ordinal) {
  if (refuses(__func__)) return refused();
  const Driver driver;
  if (ordinal >= gpus()) return cudaErrorInvalidDevice;
  current_gpu = ordinal;
  return cudaSuccess;
}
cudaError_t cudaInitDevice(int ordinal, unsigned /*device_flags*/, unsigned /*flags*/) {
  if (refuses(__func__)) return refused();
  return ordinal < gpus() ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaDeviceReset() {
  if (refuses(__func__)) return refused();
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  if (refuses(__func__)) return cudaErrorMemoryAllocation;
  const Driver driver;
  *address = bytes > memory_bytes() - taken_memory() ? nullptr : take_memory(bytes);
  return *address == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFree(void* address) {
  if (refuses(__func__)) return refused();
  const Driver driver;
  device().wait_until_idle();
  give_back_memory(address);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void* address, std::size_t bytes, unsigned /*flags*/) {
  if (refuses(__func__)) return refused();
  const Driver driver;
  const bool pages = reinterpret_cast<std::uintptr_t>(address) % 4096 == 0 && bytes % 4096 == 0;
  if (!pages) return cudaErrorInvalidValue;
  registered()[static_cast<const std::byte*>(address)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* address) {
  if (refuses(__func__)) {
    device().wait_until_idle();  // the pages may be unmapped next, and a broken GPU uses none
    return refused();
  }
  const Driver driver;
  device().wait_until_idle();
  registered().erase(static_cast<const std::byte*>(address));
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  if (refuses(__func__)) return refused();
  const Driver driver;
  *attributes = {};
  attributes->type = type_of(address);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  if (refuses(__func__)) return refused();
  *total = memory_bytes();
  *free = *total - taken_memory();
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  if (refuses(__func__)) return refused();
  const Driver driver;
  *stream = reinterpret_cast<cudaStream_t>(&device().make_queue());
  return cudaSuccess;
}
// Priorities like a GPU's. They change no order that a program may rely on.
cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  if (refuses(__func__)) return refused();
  *lowest = 0;
  *highest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned /*flags*/, int priority) {
  if (refuses(__func__) || priority > 0 || priority < -5) return refused();
  const Driver driver;
  *stream = reinterpret_cast<cudaStream_t>(&device().make_queue());
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (refuses(__func__)) return refused();
  device().end_queue(queue_of(stream));
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (refuses(__func__)) return refused();
  { const Driver driver; }
  queue_of(stream).wait_until_idle();
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (refuses(__func__)) return refused();
  const Driver driver;
  return queue_of(stream).idle() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  if (refuses(__func__)) return refused();
  const Driver driver;
  const auto last = event_of(event).last;
  if (last) queue_of(stream).give([last] { device().wait_for(*last); });
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (refuses(__func__)) return refused();
  const Driver driver;
  *event = reinterpret_cast<cudaEvent_t>(new Event{(flags & cudaEventDisableTiming) == 0});
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (refuses(__func__)) return refused();
  const Driver driver;
  delete reinterpret_cast<Event*>(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (refuses(__func__)) return refused();
  const Driver driver;
  const auto last = std::make_shared<Moment>();
  event_of(event).last = last;
  queue_of(stream).give([last] { device().reach(*last); });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (refuses(__func__)) return refused();
  const Driver driver;
  return event_of(event).passed() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t first, cudaEvent_t second) {
  if (refuses(__func__)) return refused();
  const Driver driver;
  for (const cudaEvent_t event : {first, second}) {
    const Event& one = event_of(event);
    if (!one.timed || one.last == nullptr) return cudaErrorInvalidResourceHandle;
    if (!one.passed()) return cudaErrorNotReady;
  }
  const double elapsed_ms = event_of(second).last->at_ms - event_of(first).last->at_ms;
  *milliseconds = static_cast<float>(elapsed_ms * device_clock_rate);
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (refuses(__func__)) return refused();
  std::shared_ptr<Moment> last;
  {
    const Driver driver;
    last = event_of(event).last;
  }
  if (last) device().wait_for(*last);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(
    void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (refuses(__func__)) return refused();
  return cudaMemcpy2DAsync(to, bytes, from, bytes, bytes, 1, kind, stream);
}
cudaError_t cudaMemcpy2DAsync(void* to,
                              std::size_t to_pitch,
                              const void* from,
                              std::size_t from_pitch,
                              std::size_t width,
                              std::size_t height,
                              cudaMemcpyKind /*kind*/,
                              cudaStream_t stream) {
  if (refuses(__func__)) return refused();
  if (width > to_pitch || width > from_pitch) return cudaErrorInvalidPitchValue;
  const auto copy = [=](const std::byte* source) {
    for (std::size_t row = 0; row < height; ++row) {
      std::memmove(static_cast<std::byte*>(to) + row * to_pitch, source + row * from_pitch, width);
    }
  };
  const auto* const source = static_cast<const std::byte*>(from);
  bool returns_late = false;
  {
    const Driver driver;
    returns_late = type_of(to) == cudaMemoryTypeUnregistered;
    if (type_of(from) == cudaMemoryTypeUnregistered) {  // read at once
      const std::vector<std::byte> read(source, source + (height - 1) * from_pitch + width);
      queue_of(stream).give_work([copy, read] { copy(read.data()); });
    } else {
      queue_of(stream).give_work([copy, source] { copy(source); });
    }
  }
  if (returns_late) queue_of(stream).wait_until_idle();
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* address, int value, std::size_t bytes, cudaStream_t stream) {
  if (refuses(__func__)) return refused();
  const Driver driver;
  queue_of(stream).give_work([=] { std::memset(address, value, bytes); });
  return cudaSuccess;
}

}  // extern "C"
