#pragma once
#include <vector>

#include "runtime/tensor/tensor_view.h"

namespace dstrain::test {

/// A tensor's values as f32 or bf16, the two kinds that activations come in. Reading gives what is
/// stored, so that references start from the rounded values.
class TypedValues {
 public:
  TypedValues(const std::vector<float>& values, DType dtype) : dtype_(dtype) { assign(values); }
  void assign(const std::vector<float>& values) {
    floats_ = values;
    halves_.clear();
    for (const float value : values) halves_.push_back(to_bfloat16(value));
  }
  [[nodiscard]] HostView view(Shape shape) {
    return dtype_ == DType::bf16 ? HostView(halves_, shape) : HostView(floats_, shape);
  }
  [[nodiscard]] std::vector<float> read() const {
    if (dtype_ == DType::f32) return floats_;
    std::vector<float> values;
    for (const BFloat16 value : halves_) values.push_back(to_float(value));
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
  std::vector<BFloat16> halves_;
};

/// `value` as a tensor of `dtype` keeps it.
inline float rounded(float value, DType dtype) {
  return dtype == DType::bf16 ? to_float(to_bfloat16(value)) : value;
}

}  // namespace dstrain::test
