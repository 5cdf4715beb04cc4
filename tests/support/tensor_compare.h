#pragma once
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/tensor/host_access.h"

namespace dstrain::test {

/// |actual - expected| <= absolute + relative * |expected|.
struct Tolerance {
  double absolute;
  double relative;
};

/// The one table of tolerances, fp32 against double. One rounding is 6e-8 relative; sums of n terms
/// of size s err by about sqrt(n) 6e-8 s, which the absolute part covers for the sizes of tests.
namespace tolerance {
inline constexpr Tolerance exact{0, 0};
inline constexpr Tolerance elementwise{1e-6, 2e-6};     ///< a few operations per element
inline constexpr Tolerance reduction{1e-5, 1e-5};       ///< sums of up to a thousand terms
inline constexpr Tolerance long_reduction{5e-4, 1e-5};  ///< of several thousand terms
inline constexpr Tolerance rounded_half{1e-2, 4e-3};    ///< a sum, then one rounding to 16 bits
inline constexpr Tolerance model{2e-5, 1e-4};           ///< through a whole model and back

/// The same for values stored as `dtype`: halves round once more, bf16 by up to 2^-8 and f16 by
/// 2^-11, or where it has no more digits by 2^-25.
constexpr Tolerance stored(DType dtype, Tolerance f32) {
  if (dtype == DType::f16) return {f32.absolute + 0x1p-25, f32.relative + 0x1p-11};
  return dtype == DType::bf16 ? Tolerance{f32.absolute, f32.relative + 0x1p-8} : f32;
}
}  // namespace tolerance

/// Empty when all values agree; else the first mismatch and the largest errors, for CHECK(.. ==
/// "").
template <class A, class E>
std::string difference(const A& actual, const E& expected, Tolerance tolerance) {
  if (std::size(actual) != std::size(expected)) {
    return fmt::format("{} values, expected {}", std::size(actual), std::size(expected));
  }
  std::string first;
  double absolute = 0;
  double relative = 0;
  for (std::size_t i = 0; i < std::size(actual); ++i) {
    const auto a = static_cast<double>(actual[i]);
    const auto e = static_cast<double>(expected[i]);
    const double error = std::abs(a - e);
    absolute = std::max(absolute, error);
    if (e != 0) relative = std::max(relative, error / std::abs(e));
    const bool close = error <= tolerance.absolute + tolerance.relative * std::abs(e);
    if (!close && first.empty()) first = fmt::format("[{}] is {:.9g}, expected {:.9g}", i, a, e);
  }
  if (first.empty()) return "";
  return fmt::format("{}; largest error {:.3g} absolute, {:.3g} relative", first, absolute,
                     relative);
}

/// Appends the elements of an f32, bf16 or f16 view as floats.
inline void append_floats(const TensorView& of, std::vector<float>& values) {
  const HostView view = host_access(of);
  if (view.dtype() == DType::f32) {
    const std::span<float> floats = view.as<float>();
    values.insert(values.end(), floats.begin(), floats.end());
    return;
  }
  if (view.dtype() == DType::f16) {
    for (const Float16 value : view.as<Float16>()) values.push_back(to_float(value));
  } else {
    for (const BFloat16 value : view.as<BFloat16>()) values.push_back(to_float(value));
  }
}

}  // namespace dstrain::test
