#pragma once
#include <cstdint>

namespace dstrain::ops {

/// Partial sums of a reduction: element i goes to lane i % 64, and lanes are added as a tree.
/// Compilers turn this fixed order into vector instructions, several at a time, with the same bits
/// for every instruction set.
inline constexpr int lane_count = 64;

template <class Combine>
inline float fold_lanes(float* lane, Combine combine) {
  for (int width = lane_count / 2; width > 0; width /= 2) {
    for (int j = 0; j < width; ++j) lane[j] = combine(lane[j], lane[j + width]);
  }
  return lane[0];
}

/// Returns the sum of term(i) for i in [0, count).
template <class Term>
inline float sum_lanes(std::int64_t count, Term term) {
  float lane[lane_count] = {};
  std::int64_t i = 0;
  for (; i + lane_count <= count; i += lane_count) {
    for (int j = 0; j < lane_count; ++j) lane[j] += term(i + j);
  }
  for (int j = 0; i < count; ++i, ++j) lane[j] += term(i);
  return fold_lanes(lane, [](float a, float b) { return a + b; });
}

/// Returns the largest of values[0, count) and `start`.
inline float max_lanes(const float* values, std::int64_t count, float start) {
  float lane[lane_count];
  for (float& value : lane) value = start;
  std::int64_t i = 0;
  for (; i + lane_count <= count; i += lane_count) {
    for (int j = 0; j < lane_count; ++j) {
      lane[j] = values[i + j] > lane[j] ? values[i + j] : lane[j];
    }
  }
  for (int j = 0; i < count; ++i, ++j) lane[j] = values[i] > lane[j] ? values[i] : lane[j];
  return fold_lanes(lane, [](float a, float b) { return a > b ? a : b; });
}

}  // namespace dstrain::ops
