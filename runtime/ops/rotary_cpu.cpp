#include "runtime/ops/rotary_cpu.h"

#include "runtime/ops/chunks.h"
#include "runtime/ops/simd.h"
#include "runtime/ops/sin_cos.h"

namespace dstrain::ops {
namespace {

constexpr std::int64_t positions_per_task = 64;

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

void RotaryTable::fill(const Rotary& rotary, const Positions& positions) const {
  if (dims_ == 0) return;
  const Rotary::Frequencies& frequencies = rotary.frequencies_of(positions.tokens);
  for (std::int64_t i = 0; i < positions.count; ++i) {
    fill_kernel(frequencies.data(), rotary.magnitude, dims_ / 2,
                static_cast<float>(positions.first + i), memory_ + i * dims_);
  }
}

void RotaryTable::turn(const Rows& rows, Direction direction) const {
  if (dims_ == 0) return;
  turn_kernel(rows, memory_, dims_ / 2, direction == Direction::forward ? 1.0F : -1.0F);
}

}  // namespace dstrain::ops
