#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "runtime/ops/cuda/gpu.h"
#include "runtime/ops/elements.h"
#include "tests/stand_in/warp_matrices.h"

// Replaces the real header of this name, for the CPU. Operations of a whole warp are in
// warp_matrices.h.

namespace dstrain::ops::gpu {

inline void load_matrices(const void* row, std::uint32_t (&pairs)[4]) {
  stand_in::load_matrices(row, pairs, stand_in::Order::plain);
}
inline void load_transposed_matrices(const void* row, std::uint32_t (&pairs)[4]) {
  stand_in::load_matrices(row, pairs, stand_in::Order::transposed);
}

template <class T>
void multiply_add_matrices(const std::uint32_t (&a)[4],
                           const std::uint32_t (&b)[2],
                           float (&c)[4]) {
  stand_in::multiply_add<T>(a, b, c);
}

template <class T>
std::uint32_t pack(float low, float high) {
  return from_float<T>(low).bits | (std::uint32_t{from_float<T>(high).bits} << 16U);
}

inline void store_pair(void* target, std::uint32_t pair) {
  std::memcpy(target, &pair, sizeof(pair));
}
inline void copy_chunk(void* target, const void* source) {
  std::memcpy(target, source, 16);
}

constexpr float approximate_exp2(float x) {
  return std::exp2(x);
}
constexpr float approximate_reciprocal(float x) {
  return 1.0F / x;
}

inline void start_copy(void* target, const void* source, bool exists) {
  stand_in::start_copy(target, exists ? source : nullptr);
}
inline void wait_for_copies() {
  stand_in::wait_for_copies();
}

}  // namespace dstrain::ops::gpu
