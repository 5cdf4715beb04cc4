#include "runtime/ops/square_sum_cpu.h"

#include <array>
#include <vector>

#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/simd.h"
#include "runtime/ops/square_sum.h"

namespace dstrain::ops {
namespace {

constexpr int lanes = 8;
constexpr std::int64_t block_numel = 64;

inline double add_lanes(const double* lane) {
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

template <class T>
DSTRAIN_SIMD_CLONES void whole_blocks_kernel(const T* __restrict values,
                                             double* __restrict sums,
                                             std::int64_t blocks) {
  for (std::int64_t block = 0; block < blocks; ++block) {
    const T* const x = values + block * block_numel;
    double lane[lanes] = {};
    for (int i = 0; i < block_numel; i += lanes) {
      for (int j = 0; j < lanes; ++j) {
        const auto value = static_cast<double>(to_float(x[i + j]));
        lane[j] += value * value;
      }
    }
    sums[block] = add_lanes(lane);
  }
}

template <class T>
double short_block(const T* values, std::int64_t count) {
  double lane[lanes] = {};
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(to_float(values[i]));
    lane[i % lanes] += value * value;
  }
  return add_lanes(lane);
}

}  // namespace

namespace cpu {

template <class T>
ExactSum sum_squares(const T* values, std::int64_t count) {
  std::array<double, square_chunk / block_numel> sums;
  const std::int64_t whole = count / block_numel;
  whole_blocks_kernel(values, sums.data(), whole);
  ExactSum sum;
  for (std::int64_t block = 0; block < whole; ++block) {
    sum.add(sums[static_cast<std::size_t>(block)]);
  }
  const std::int64_t rest = count % block_numel;
  if (rest > 0) sum.add(short_block(values + count - rest, rest));
  return sum;
}

template ExactSum sum_squares(const float* values, std::int64_t count);

namespace {

void add_to(ExactSum& total, const TensorView& values) {
  const std::int64_t tasks = chunk_count(values.numel(), square_chunk);
  std::vector<ExactSum> parts(static_cast<std::size_t>(tasks));
  with_element_type(values.dtype(), [&](auto element) {
    for_chunks(values.numel(), square_chunk, [&](std::int64_t begin, std::int64_t end) {
      parts[static_cast<std::size_t>(begin / square_chunk)] =
          sum_squares(elements<decltype(element)>(values) + begin, end - begin);
    });
  });
  for (const ExactSum& part : parts) total.add(part);
}

}  // namespace

void add_squares(const AddSquaresArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args] {
    for (const TensorView& values : args.values) add_to(*elements<ExactSum>(args.sum), values);
  });
}

}  // namespace cpu
}  // namespace dstrain::ops
