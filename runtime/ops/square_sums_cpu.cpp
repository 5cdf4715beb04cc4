#include "runtime/base/error.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/simd.h"
#include "runtime/ops/square_sums.h"

namespace dstrain::ops {
namespace {

constexpr int lanes = 8;
constexpr std::int64_t blocks_per_task = 1024;

inline double add_lanes(const double* lane) {
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

DSTRAIN_SIMD_CLONES
void whole_blocks_kernel(const float* __restrict values,
                         double* __restrict sums,
                         std::int64_t blocks) {
  for (std::int64_t block = 0; block < blocks; ++block) {
    const float* const x = values + block * square_sum_block;
    double lane[lanes] = {};
    for (int i = 0; i < square_sum_block; i += lanes) {
      for (int j = 0; j < lanes; ++j) {
        const auto value = static_cast<double>(x[i + j]);
        lane[j] += value * value;
      }
    }
    sums[block] = add_lanes(lane);
  }
}

double short_block(std::span<const float> values) {
  double lane[lanes] = {};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<double>(values[i]);
    lane[i % lanes] += value * value;
  }
  return add_lanes(lane);
}

}  // namespace

void square_sums(std::span<const float> values, std::span<double> sums, StreamView stream) {
  const auto numel = static_cast<std::int64_t>(values.size());
  DSTRAIN_CHECK(static_cast<std::int64_t>(sums.size()) == square_sum_count(numel),
                "{} sums for {} values", sums.size(), numel);
  stream.launch([values, sums, numel] {
    const std::int64_t whole = numel / square_sum_block;
    for_chunks(whole, blocks_per_task, [&](std::int64_t begin, std::int64_t end) {
      whole_blocks_kernel(values.data() + begin * square_sum_block, sums.data() + begin,
                          end - begin);
    });
    if (numel % square_sum_block != 0) {
      sums.back() = short_block(values.subspan(static_cast<std::size_t>(whole * square_sum_block)));
    }
  });
}

}  // namespace dstrain::ops
