#pragma once
#include <array>
#include <cstdint>

namespace dstrain::ops {

/// Rotary position embedding of a head (Su et al. 2021), in Hugging Face's layout: with n = dims,
/// at position p feature i < n / 2 and feature i + n / 2 turn by the angle p frequencies[i], and
/// both are multiplied by `magnitude`. Features from n on stay. Angles are products in f32.
/// Sequences of more than `short_positions` tokens may turn by other frequencies than shorter ones
/// (Ding et al. 2024): all of their positions do.
struct Rotary {
  static constexpr std::int64_t dims_max = 256;
  using Frequencies = std::array<float, dims_max / 2>;
  std::int64_t dims = 0;  ///< even; 0: nothing turns
  float magnitude = 1;
  Frequencies frequencies{};
  std::int64_t short_positions = 0;  ///< 0: `frequencies` are those of all sequences
  Frequencies long_frequencies{};
  [[nodiscard]] bool active() const { return dims > 0; }
  /// Of sequences of so many tokens.
  [[nodiscard]] const Frequencies& frequencies_of(std::int64_t tokens) const {
    return short_positions > 0 && tokens > short_positions ? long_frequencies : frequencies;
  }
};

}  // namespace dstrain::ops
