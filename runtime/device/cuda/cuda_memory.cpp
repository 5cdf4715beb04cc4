#include "runtime/device/cuda/cuda_memory.h"

#include <algorithm>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "runtime/device/cuda/cuda_check.h"
#include "runtime/numeric/parallel_for.h"

namespace dstrain::cuda {
namespace {

constexpr Bytes page = 4096;

/// "GPU 0: 2 GiB (1 GiB of 79 GiB are free)"
std::string describe_request(int ordinal, Bytes bytes) {
  std::size_t free = 0;
  std::size_t total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) {
    return fmt::format("GPU {}: {}", ordinal, format_bytes(bytes));
  }
  return fmt::format("GPU {}: {} ({} of {} are free)", ordinal, format_bytes(bytes),
                     format_bytes(static_cast<Bytes>(free)),
                     format_bytes(static_cast<Bytes>(total)));
}

/// Faults the pages in with all compute threads; registering them would do it with one thread.
void fault_in(std::byte* first, Bytes bytes) {
  constexpr Bytes piece = 2 * mebibyte;
  parallel_for((bytes + piece - 1) / piece, [&](std::int64_t i) {
    const Bytes end = std::min(bytes, (i + 1) * piece);
    for (Bytes at = i * piece; at < end; at += page) first[at] = std::byte{};
  });
}

}  // namespace

std::byte* DeviceMemory::allocate(Bytes bytes, StreamView /*stream*/) {
  use_gpu(ordinal_);
  void* address = nullptr;
  DSTRAIN_CUDA_CHECK(cudaMalloc(&address, static_cast<std::size_t>(std::max<Bytes>(bytes, 1))),
                     "{}", describe_request(ordinal_, bytes));
  return static_cast<std::byte*>(address);
}

void DeviceMemory::deallocate(std::byte* address, Bytes /*bytes*/, StreamView stream) noexcept {
  stream.wait_until_idle();
  cudaFree(address);
}

std::byte* PinnedMemory::allocate(Bytes bytes, StreamView stream) {
  const Bytes size = round_up(std::max<Bytes>(bytes, 1), page);  // no page is registered twice
  Taken taken{upstream_.allocate(size, stream), size};
  if (reinterpret_cast<std::uintptr_t>(taken.address) % page != 0) {
    upstream_.deallocate(taken.address, taken.bytes, stream);
    taken = {upstream_.allocate(size + page, stream), size + page};
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(taken.address);
  std::byte* const address = taken.address + (page - begin % page) % page;
  fault_in(address, size);
  cudaSetDevice(ordinal_);
  const cudaError_t error =
      cudaHostRegister(address, static_cast<std::size_t>(size), cudaHostRegisterPortable);
  if (error != cudaSuccess) {
    upstream_.deallocate(taken.address, taken.bytes, stream);
    fail_call(error, "cudaHostRegister",
              fmt::format("GPU {}: {} of host memory (pin_memory false does without)", ordinal_,
                          format_bytes(size)));
  }
  const std::lock_guard lock(mutex_);
  taken_.emplace(address, taken);
  return address;
}

void PinnedMemory::deallocate(std::byte* address, Bytes /*bytes*/, StreamView stream) noexcept {
  stream.wait_until_idle();
  cudaHostUnregister(address);
  Taken taken{};
  {
    const std::lock_guard lock(mutex_);
    const auto found = taken_.find(address);
    taken = found->second;
    taken_.erase(found);
  }
  upstream_.deallocate(taken.address, taken.bytes, stream);
}

}  // namespace dstrain::cuda
