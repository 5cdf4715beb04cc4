#pragma once
#include <optional>
#include <span>
#include <utility>

#include "runtime/device/memory_resource.h"

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

  [[nodiscard]] std::span<std::byte> bytes() const noexcept {
    return {data_, static_cast<std::size_t>(bytes_)};
  }
  /// The memory as elements of T; the size must be a multiple of sizeof(T).
  template <class T>
  [[nodiscard]] std::span<T> as() const noexcept {
    return {reinterpret_cast<T*>(data_), static_cast<std::size_t>(bytes_) / sizeof(T)};
  }

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

}  // namespace dstrain
