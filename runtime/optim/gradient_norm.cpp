#include "runtime/optim/gradient_norm.h"

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/base/parallel_for.h"
#include "runtime/ops/square_sums.h"

namespace dstrain::optim {
namespace {

constexpr std::int64_t blocks_per_chunk = 1024;
constexpr std::int64_t chunk_numel = blocks_per_chunk * ops::square_sum_block;

}  // namespace

void add_squares(std::span<const float> values, ExactSum& sum) {
  const auto numel = static_cast<std::int64_t>(values.size());
  const std::int64_t chunks = (numel + chunk_numel - 1) / chunk_numel;
  std::vector<ExactSum> partial(static_cast<std::size_t>(chunks));
  parallel_for(chunks, [&](std::int64_t chunk) {
    const std::int64_t begin = chunk * chunk_numel;
    const std::int64_t count = std::min(chunk_numel, numel - begin);
    std::array<double, blocks_per_chunk> blocks;
    const std::span<double> sums(blocks.data(),
                                 static_cast<std::size_t>(ops::square_sum_count(count)));
    Stream inline_stream(Stream::Mode::inline_on_caller);
    ops::square_sums(
        values.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)), sums,
        inline_stream);
    for (const double block : sums) partial[static_cast<std::size_t>(chunk)].add(block);
  });
  for (const ExactSum& part : partial) sum.add(part);
}

double clip_scale(double norm, double norm_max) {
  return norm_max > 0 ? std::min(1.0, norm_max / (norm + 1e-6)) : 1.0;
}

}  // namespace dstrain::optim
