#pragma once
#include <array>
#include <cstdint>

namespace dstrain::ops {

/// Rotary position embedding of a head (Su et al. 2021), in Hugging Face's layout. With n = dims,
/// at position p, features i < n / 2 and i + n / 2 rotate by the angle p frequencies[i], and both
/// are multiplied by `magnitude`. Features from n on stay unchanged. Angles are f32 products. All
/// positions of sequences of more than `short_positions` tokens may use other frequencies than
/// those of shorter sequences (Ding et al. 2024).
struct Rotary {
  static constexpr std::int64_t dims_max = 256;
  using Frequencies = std::array<float, dims_max / 2>;
  std::int64_t dims = 0;  ///< even; 0: no rotation
  float magnitude = 1;
  Frequencies frequencies{};
  std::int64_t short_positions = 0;  ///< 0: `frequencies` apply to all sequences
  Frequencies long_frequencies{};
  [[nodiscard]] bool active() const { return dims > 0; }
  /// Returns the frequencies for sequences of `tokens` tokens.
  [[nodiscard]] const Frequencies& frequencies_of(std::int64_t tokens) const {
    return short_positions > 0 && tokens > short_positions ? long_frequencies : frequencies;
  }
};

}  // namespace dstrain::ops
