#pragma once
#include <vector>

#include "runtime/tensor/tensor_view.h"

namespace dstrain::test {

/// The bits of `value` as bf16 or f16, and back.
inline std::uint16_t half_bits(float value, DType dtype) {
  return dtype == DType::f16 ? to_float16(value).bits : to_bfloat16(value).bits;
}
inline float half_value(std::uint16_t bits, DType dtype) {
  return dtype == DType::f16 ? to_float(Float16{bits}) : to_float(BFloat16{bits});
}

/// `value` as a tensor of `dtype` keeps it.
inline float rounded(float value, DType dtype) {
  return is_half(dtype) ? half_value(half_bits(value, dtype), dtype) : value;
}

/// A tensor's values as f32, bf16 or f16, the kinds that activations come in. Reading gives what is
/// stored, so that references start from the rounded values.
class TypedValues {
 public:
  TypedValues(const std::vector<float>& values, DType dtype) : dtype_(dtype) { assign(values); }
  void assign(const std::vector<float>& values) {
    floats_ = values;
    halves_.clear();
    for (const float value : values) halves_.push_back(half_bits(value, dtype_));
  }
  [[nodiscard]] HostView view(Shape shape) {
    return is_half(dtype_) ? HostView(halves_.data(), dtype_, shape) : HostView(floats_, shape);
  }
  [[nodiscard]] std::vector<float> read() const {
    if (dtype_ == DType::f32) return floats_;
    std::vector<float> values;
    for (const std::uint16_t bits : halves_) values.push_back(half_value(bits, dtype_));
    return values;
  }
  [[nodiscard]] std::vector<double> read_double() const {
    const std::vector<float> values = read();
    return {values.begin(), values.end()};
  }
  [[nodiscard]] std::size_t size() const { return floats_.size(); }

 private:
  DType dtype_;
  std::vector<float> floats_;
  std::vector<std::uint16_t> halves_;
};

}  // namespace dstrain::test
