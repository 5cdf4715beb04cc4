#pragma once
#include "runtime/tensor/bfloat16.h"
#include "runtime/tensor/float16.h"
#include "runtime/tensor/host_access.h"

namespace dstrain::ops {

// Activations and weights are float, BFloat16 or Float16. Kernels are templates over that type:
// they widen on load, compute in f32, and round once, on store.

using dstrain::to_float;
constexpr float to_float(float value) {
  return value;
}

/// Returns `value` rounded to T.
template <class T>
constexpr T from_float(float value) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(value);
  } else if constexpr (std::is_same_v<T, Float16>) {
    return to_float16(value);
  } else {
    return value;
  }
}

/// Returns the memory of a view of T, for CPU kernels; null if the view is empty.
template <class T>
T* elements(const TensorView& view) {
  return reinterpret_cast<T*>(host_access(view).data());
}
inline float* floats(const TensorView& view) {
  return elements<float>(view);
}

/// Calls `body` with a value of the 16-bit type that `dtype` (bf16 or f16) names.
template <class Body>
void with_half_type(DType dtype, const Body& body) {
  if (dtype == DType::bf16) {
    body(BFloat16{});
  } else {
    body(Float16{});
  }
}

/// Calls `body` with a value of the element type that `dtype` (f32, bf16 or f16) names.
template <class Body>
void with_element_type(DType dtype, const Body& body) {
  if (dtype == DType::f32) {
    body(float{});
  } else {
    with_half_type(dtype, body);
  }
}

}  // namespace dstrain::ops
