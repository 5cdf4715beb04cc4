#include "runtime/ops/rotary_cpu.h"

#include <cmath>
#include <numbers>

#include "runtime/ops/chunks.h"
#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

constexpr std::int64_t positions_per_task = 64;

struct SinCos {
  float sine;
  float cosine;
};

/// To some 1e-7 for any angle of fewer than 2^30 quarter turns: what is left of a quarter turn is
/// found in double, then come the polynomials of Cephes (Moshier, sinf.c).
inline SinCos sin_cos(float angle) {
  constexpr double quarters_per_radian = 2.0 / std::numbers::pi;
  constexpr double round_to_integer = 6755399441055744.0;  // 1.5 * 2^52: adding drops the fraction
  const double shifted = static_cast<double>(angle) * quarters_per_radian + round_to_integer;
  const double quarters = shifted - round_to_integer;
  const auto r =
      static_cast<float>(static_cast<double>(angle) - quarters * (std::numbers::pi / 2.0));
  const auto quadrant = static_cast<std::int32_t>(quarters);
  const float z = r * r;
  const float sine =
      r + r * z * (-1.6666654611e-1F + z * (8.3321608736e-3F - 1.9515295891e-4F * z));
  const float cosine =
      1.0F - 0.5F * z +
      z * z * (4.166664568298827e-2F + z * (-1.388731625493765e-3F + z * 2.443315711809948e-5F));
  const bool swapped = (quadrant & 1) != 0;
  const float s = swapped ? cosine : sine;
  const float c = swapped ? sine : cosine;
  return {(quadrant & 2) != 0 ? -s : s, ((quadrant + 1) & 2) != 0 ? -c : c};
}

DSTRAIN_SIMD_CLONES
void fill_kernel(const float* __restrict frequencies,
                 float magnitude,
                 std::int64_t half,
                 float position,
                 float* __restrict table) {
  for (std::int64_t i = 0; i < half; ++i) {
    const SinCos at = sin_cos(position * frequencies[i]);
    table[i] = at.cosine * magnitude;
    table[half + i] = at.sine * magnitude;
  }
}

DSTRAIN_SIMD_CLONES
void turn_kernel(const RotaryTable::Rows& rows,
                 const float* __restrict table,
                 std::int64_t half,
                 float sign) {
  for (std::int64_t row = 0; row < rows.count; ++row) {
    float* __restrict const low = rows.values + row * rows.columns;
    float* __restrict const high = low + half;
    const float* const cosines = table + (rows.first + row) * 2 * half;
    const float* const sines = cosines + half;
    for (std::int64_t i = 0; i < half; ++i) {
      const float a = low[i];
      const float b = high[i];
      const float s = sign * sines[i];
      low[i] = a * cosines[i] - b * s;
      high[i] = b * cosines[i] + a * s;
    }
  }
}

}  // namespace

void RotaryTable::fill(const Rotary& rotary, std::int64_t positions) const {
  if (dims_ == 0) return;
  const Rotary::Frequencies& frequencies = rotary.frequencies_of(positions);
  for_chunks(positions, positions_per_task, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      fill_kernel(frequencies.data(), rotary.magnitude, dims_ / 2, static_cast<float>(p),
                  memory_ + p * dims_);
    }
  });
}

void RotaryTable::turn(const Rows& rows, Direction direction) const {
  if (dims_ == 0) return;
  turn_kernel(rows, memory_, dims_ / 2, direction == Direction::forward ? 1.0F : -1.0F);
}

}  // namespace dstrain::ops
