#pragma once
#include <cstddef>
#include <span>

#include "runtime/base/error.h"
#include "runtime/device/device.h"
#include "runtime/tensor/bfloat16.h"
#include "runtime/tensor/dtype.h"
#include "runtime/tensor/float16.h"
#include "runtime/tensor/shape.h"

namespace dstrain {

/// Typed memory of a device, with a shape; does not own it. It identifies the memory but gives no
/// access to it: ops, copies and collectives that run on that device have access (HostView, below,
/// is for the host). Rows may be strided: consecutive rows of the last axis are `row_stride`
/// elements apart (the last extent if dense). A view without memory describes a tensor. Pass by
/// value.
class TensorView {
 public:
  TensorView() = default;
  /// Describes a tensor.
  TensorView(DType dtype, Shape shape) : TensorView(nullptr, dtype, shape, Device{}) {}
  /// For owners of memory: `address` is an address of `device`.
  TensorView(void* address, DType dtype, Shape shape, Device device)
      : TensorView(address, dtype, shape, device, shape.rank() == 0 ? 1 : shape[shape.rank() - 1]) {
  }

  [[nodiscard]] bool empty() const { return address_ == nullptr; }
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] std::int64_t numel() const { return shape_.numel(); }
  [[nodiscard]] Bytes bytes() const { return numel() * size_of(dtype_); }
  [[nodiscard]] Device device() const { return device_; }
  [[nodiscard]] std::int64_t row_stride() const { return row_stride_; }
  [[nodiscard]] bool dense() const {
    return shape_.rank() == 0 || row_stride_ == shape_[shape_.rank() - 1];
  }
  /// Whether both begin at the same address.
  [[nodiscard]] bool begins_with(const TensorView& other) const {
    return address_ == other.address_;
  }

  /// Returns the same dense elements with another shape of equal numel.
  [[nodiscard]] TensorView reshaped(Shape shape) const {
    require_dense(shape.numel() == numel(), 0, shape);
    return {address_, dtype_, shape, device_};
  }
  /// Returns the elements of a dense view from `begin` on, as `shape`.
  [[nodiscard]] TensorView part(std::int64_t begin, Shape shape) const {
    require_dense(begin >= 0 && begin + shape.numel() <= numel(), begin, shape);
    return {at(begin), dtype_, shape, device_};
  }
  /// Returns the memory of a dense view for another tensor that fits into it.
  [[nodiscard]] TensorView reused(DType dtype, Shape shape) const {
    require_dense(shape.numel() * size_of(dtype) <= bytes(), 0, shape);
    return {address_, dtype, shape, device_};
  }
  /// Returns rows [first, first + count) of a dense view (R, C), as (count, C).
  [[nodiscard]] TensorView rows(std::int64_t first, std::int64_t count) const {
    DSTRAIN_CHECK(shape_.rank() == 2, "rows of {}", to_string(shape_));
    return part(first * shape_[1], {count, shape_[1]});
  }
  /// Returns columns [first, first + count) of a dense view (R, C), as strided (R, count).
  [[nodiscard]] TensorView columns(std::int64_t first, std::int64_t count) const {
    DSTRAIN_CHECK(dense() && shape_.rank() == 2 && first >= 0 && first + count <= shape_[1],
                  "{} columns from {} in {}", count, first, to_string(shape_));
    return {at(first), dtype_, Shape{shape_[0], count}, device_, shape_[1]};
  }
  /// Returns a tensor in a dense block of bytes (u8), from byte `begin` on.
  [[nodiscard]] TensorView cut(Bytes begin, DType dtype, Shape shape) const {
    require_dense(
        dtype_ == DType::u8 && begin >= 0 && begin + shape.numel() * size_of(dtype) <= bytes(),
        begin, shape);
    return {at(begin), dtype, shape, device_};
  }

 protected:
  TensorView(void* address, DType dtype, Shape shape, Device device, std::int64_t row_stride)
      : address_(static_cast<std::byte*>(address)),
        shape_(shape),
        row_stride_(row_stride),
        dtype_(dtype),
        device_(device) {}

 private:
  friend class HostView;
  friend std::byte* device_access(const TensorView& view);
  /// Null without memory.
  [[nodiscard]] std::byte* at(std::int64_t element) const {
    return empty() ? nullptr : address_ + element * size_of(dtype_);
  }
  void require_dense(bool fits, std::int64_t begin, const Shape& shape) const {
    DSTRAIN_CHECK(dense() && fits, "{} from {} in {}", to_string(shape), begin, to_string(shape_));
  }

  std::byte* address_ = nullptr;
  Shape shape_;
  std::int64_t row_stride_ = 0;
  DType dtype_ = DType::f32;
  Device device_;
};

/// Host memory that any code with the view may read and write. It is also a TensorView of the CPU
/// device; the reverse is not true (but see host_access.h).
class HostView : public TensorView {
 public:
  HostView() = default;
  HostView(void* data, DType dtype, Shape shape) : TensorView(data, dtype, shape, Device{}) {}
  /// A dense view of `values`.
  HostView(std::span<float> values, Shape shape)
      : HostView(values.data(), DType::f32, shape, values.size()) {}
  HostView(std::span<BFloat16> values, Shape shape)
      : HostView(values.data(), DType::bf16, shape, values.size()) {}
  HostView(std::span<Float16> values, Shape shape)
      : HostView(values.data(), DType::f16, shape, values.size()) {}
  HostView(std::span<std::int32_t> values, Shape shape)
      : HostView(values.data(), DType::i32, shape, values.size()) {}
  HostView(std::span<std::int64_t> values, Shape shape)
      : HostView(values.data(), DType::i64, shape, values.size()) {}

  [[nodiscard]] std::byte* data() const { return address_; }
  /// Returns the elements of a dense view. T must be the view's type.
  template <class T>
  [[nodiscard]] std::span<T> as() const {
    DSTRAIN_CHECK(dtype_of<std::remove_const_t<T>> == dtype_ && dense(), "wrong type or strided");
    return {reinterpret_cast<T*>(address_), static_cast<std::size_t>(numel())};
  }

  // As in TensorView.
  [[nodiscard]] HostView reshaped(Shape shape) const {
    return HostView(TensorView::reshaped(shape));
  }
  [[nodiscard]] HostView part(std::int64_t begin, Shape shape) const {
    return HostView(TensorView::part(begin, shape));
  }
  [[nodiscard]] HostView rows(std::int64_t first, std::int64_t count) const {
    return HostView(TensorView::rows(first, count));
  }
  [[nodiscard]] HostView columns(std::int64_t first, std::int64_t count) const {
    return HostView(TensorView::columns(first, count));
  }
  [[nodiscard]] HostView cut(Bytes begin, DType dtype, Shape shape) const {
    return HostView(TensorView::cut(begin, dtype, shape));
  }

 private:
  friend HostView host_access(const TensorView& view);
  explicit HostView(const TensorView& view) : TensorView(view) {}
  HostView(void* data, DType dtype, Shape shape, std::size_t available)
      : HostView(data, dtype, shape) {
    DSTRAIN_CHECK(shape.numel() <= static_cast<std::int64_t>(available), "{} in {} elements",
                  to_string(shape), available);
  }
};

}  // namespace dstrain
