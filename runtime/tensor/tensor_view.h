#pragma once
#include <cstddef>
#include <span>

#include "runtime/base/error.h"
#include "runtime/device/device.h"
#include "runtime/tensor/bfloat16.h"
#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"

namespace dstrain {

/// Typed memory that someone else owns, with a shape. Rows may be strided: consecutive rows of the
/// last axis lie `row_stride` elements apart (the last extent when dense). Pass by value.
class TensorView {
 public:
  TensorView() = default;
  TensorView(void* data, DType dtype, Shape shape, Device device = {})
      : TensorView(data, dtype, shape, device, shape.rank() == 0 ? 1 : shape[shape.rank() - 1]) {}
  TensorView(void* data, DType dtype, Shape shape, Device device, std::int64_t row_stride)
      : data_(static_cast<std::byte*>(data)),
        shape_(shape),
        row_stride_(row_stride),
        dtype_(dtype),
        device_(device) {}
  /// A dense view of `values`.
  TensorView(std::span<float> values, Shape shape)
      : TensorView(values.data(), DType::f32, shape, values.size()) {}
  TensorView(std::span<BFloat16> values, Shape shape)
      : TensorView(values.data(), DType::bf16, shape, values.size()) {}

  [[nodiscard]] bool empty() const { return data_ == nullptr; }
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] std::int64_t numel() const { return shape_.numel(); }
  [[nodiscard]] Bytes bytes() const { return numel() * size_of(dtype_); }
  [[nodiscard]] Device device() const { return device_; }
  [[nodiscard]] std::int64_t row_stride() const { return row_stride_; }
  [[nodiscard]] bool dense() const {
    return shape_.rank() == 0 || row_stride_ == shape_[shape_.rank() - 1];
  }

  /// The elements of a dense view. T must be the view's type.
  template <class T>
  [[nodiscard]] std::span<T> as() const {
    DSTRAIN_CHECK(dtype_of<std::remove_const_t<T>> == dtype_ && dense(), "wrong type or strided");
    return {reinterpret_cast<T*>(data_), static_cast<std::size_t>(numel())};
  }
  /// The same dense elements under another shape of equal numel.
  [[nodiscard]] TensorView reshaped(Shape shape) const {
    DSTRAIN_CHECK(dense() && shape.numel() == numel(), "{} as {}", to_string(shape_),
                  to_string(shape));
    return {data_, dtype_, shape, device_};
  }
  /// `shape` of the elements of a dense view, from `begin` on.
  [[nodiscard]] TensorView part(std::int64_t begin, Shape shape) const {
    DSTRAIN_CHECK(dense() && begin >= 0 && begin + shape.numel() <= numel(), "{} from {} in {}",
                  to_string(shape), begin, to_string(shape_));
    return {data_ + begin * size_of(dtype_), dtype_, shape, device_};
  }

 private:
  TensorView(void* data, DType dtype, Shape shape, std::size_t available)
      : TensorView(data, dtype, shape) {
    DSTRAIN_CHECK(shape.numel() <= static_cast<std::int64_t>(available), "{} in {} elements",
                  to_string(shape), available);
  }

  std::byte* data_ = nullptr;
  Shape shape_;
  std::int64_t row_stride_ = 0;
  DType dtype_ = DType::f32;
  Device device_;
};

}  // namespace dstrain
