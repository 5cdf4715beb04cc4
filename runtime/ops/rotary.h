#pragma once
#include <array>
#include <cstdint>

namespace dstrain::ops {

/// Rotary position embedding of a head (Su et al. 2021), in Hugging Face's layout: with n = dims,
/// at position p feature i < n / 2 and feature i + n / 2 turn by the angle p frequencies[i], and
/// both are multiplied by `magnitude`. Features from n on stay. Angles are products in f32.
struct Rotary {
  static constexpr std::int64_t dims_max = 256;
  std::int64_t dims = 0;  ///< even; 0: nothing turns
  float magnitude = 1;
  std::array<float, dims_max / 2> frequencies{};
  [[nodiscard]] bool active() const { return dims > 0; }
};

}  // namespace dstrain::ops
