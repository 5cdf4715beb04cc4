#pragma once
#include <optional>
#include <span>
#include <utility>

#include "runtime/device/memory_resource.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain {

/// Owner of memory from a MemoryResource; freed on the stream it was allocated on. Move-only.
/// The resource and the stream must outlive it.
class Buffer {
 public:
  Buffer() noexcept = default;
  Buffer(Bytes bytes, MemoryResource& resource, StreamView stream)
      : resource_(&resource),
        stream_(stream),
        bytes_(bytes),
        data_(resource.allocate(bytes, stream)) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_ != nullptr) resource_->deallocate(data_, bytes_, *stream_);
  }

  [[nodiscard]] bool empty() const noexcept { return data_ == nullptr; }
  /// Returns all of it, as bytes (u8).
  [[nodiscard]] TensorView block() const {
    return {data_, DType::u8, {bytes_}, resource_ == nullptr ? Device{} : resource_->device()};
  }

 protected:
  [[nodiscard]] std::byte* address() const noexcept { return data_; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(resource_, other.resource_);
    std::swap(stream_, other.stream_);
    std::swap(bytes_, other.bytes_);
    std::swap(data_, other.data_);
  }

  MemoryResource* resource_ = nullptr;
  std::optional<StreamView> stream_;
  Bytes bytes_ = 0;
  std::byte* data_ = nullptr;
};

/// A buffer in host memory. Throws Error{internal} if `resource` is of another device.
class HostBuffer : public Buffer {
 public:
  HostBuffer() noexcept = default;
  HostBuffer(Bytes bytes, MemoryResource& resource, StreamView stream)
      : Buffer(bytes, of_host(resource), stream) {}

  [[nodiscard]] HostView block() const { return {address(), DType::u8, Buffer::block().shape()}; }
  [[nodiscard]] std::span<std::byte> bytes() const { return as<std::byte>(); }
  /// Returns the memory as elements of T; the size must be a multiple of sizeof(T).
  template <class T>
  [[nodiscard]] std::span<T> as() const {
    return {reinterpret_cast<T*>(address()),
            static_cast<std::size_t>(Buffer::block().bytes()) / sizeof(T)};
  }

 private:
  static MemoryResource& of_host(MemoryResource& resource) {
    DSTRAIN_CHECK(shares_host_memory(resource.device().kind), "no memory of the host");
    return resource;
  }
};

}  // namespace dstrain
