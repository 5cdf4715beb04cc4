// The calls of CUDA's run-time library that the plug-in makes, on the CPU. A stream does at once
// what it is given. Memory comes full of NaNs, from malloc, so that the address sanitizer sees what
// lies beside it.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace {

constexpr std::size_t memory_bytes = std::size_t{8} << 30;

cudaError_t allocate(void** address, std::size_t bytes) {
  if (bytes > memory_bytes) return cudaErrorMemoryAllocation;
  *address = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (*address == nullptr) return cudaErrorMemoryAllocation;
  std::memset(*address, 0xFF, bytes);
  return cudaSuccess;
}

/// That of cuda.h: waits until the word has come as far, in arithmetic modulo 2^32.
CUresult wait_value(CUstream /*stream*/, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  if (flags != CU_STREAM_WAIT_VALUE_GEQ) return CUDA_ERROR_NOT_SUPPORTED;
  std::atomic_ref<std::uint32_t> word(*reinterpret_cast<std::uint32_t*>(address));
  while (static_cast<std::int32_t>(word.load(std::memory_order_acquire) - value) < 0) {
    std::this_thread::yield();
  }
  return CUDA_SUCCESS;
}

template <class Handle>
cudaError_t make(Handle* handle) {
  *handle = static_cast<Handle>(std::malloc(1));
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
const char* cudaGetErrorName(cudaError_t /*error*/) {
  return "an error of the stand-in";
}
const char* cudaGetErrorString(cudaError_t /*error*/) {
  return "refused";
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int /*device*/) {
  *properties = {};
  std::strcpy(properties->name, "stand-in");
  properties->major = 9;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaInitDevice(int device, unsigned /*device_flags*/, unsigned /*flags*/) {
  return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaDeviceReset() {
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol,
                                             void** function,
                                             unsigned /*version*/,
                                             unsigned long long /*flags*/,
                                             cudaDriverEntryPointQueryResult* result) {
  const bool known = std::string_view(symbol) == "cuStreamWaitValue32";
  *function = known ? reinterpret_cast<void*>(&wait_value) : nullptr;
  *result = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  return allocate(address, bytes);
}
cudaError_t cudaFree(void* address) {
  std::free(address);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned /*flags*/) {
  return allocate(address, bytes);
}
cudaError_t cudaFreeHost(void* address) {
  std::free(address);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void* address, std::size_t bytes, unsigned /*flags*/) {
  const bool pages = reinterpret_cast<std::uintptr_t>(address) % 4096 == 0 && bytes % 4096 == 0;
  return pages ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaHostUnregister(void* /*address*/) {
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* /*address*/) {
  *attributes = {};
  attributes->type = cudaMemoryTypeDevice;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = memory_bytes;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  return make(stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  std::free(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t /*stream*/) {
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t /*stream*/) {
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t /*stream*/,
                                cudaEvent_t /*event*/,
                                unsigned /*flags*/) {
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  return make(event);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  std::free(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t /*event*/, cudaStream_t /*stream*/) {
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t /*event*/) {
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to,
                            const void* from,
                            std::size_t bytes,
                            cudaMemcpyKind /*kind*/,
                            cudaStream_t /*stream*/) {
  std::memmove(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to,
                              std::size_t to_pitch,
                              const void* from,
                              std::size_t from_pitch,
                              std::size_t width,
                              std::size_t height,
                              cudaMemcpyKind /*kind*/,
                              cudaStream_t /*stream*/) {
  if (width > to_pitch || width > from_pitch) return cudaErrorInvalidPitchValue;
  for (std::size_t row = 0; row < height; ++row) {
    std::memcpy(static_cast<std::byte*>(to) + row * to_pitch,
                static_cast<const std::byte*>(from) + row * from_pitch, width);
  }
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* address, int value, std::size_t bytes, cudaStream_t /*stream*/) {
  std::memset(address, value, bytes);
  return cudaSuccess;
}

}  // extern "C"
