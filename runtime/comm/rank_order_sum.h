#pragma once
#include <cstdint>
#include <span>

#include "runtime/comm/streaming.h"

namespace dstrain::comm {

/// sum[i] = ((x_0[i] + x_1[i]) + x_2[i]) + ... for i in [0, numel), in fp32, where x_r is
/// `terms[r]`. `sum` may be one of the terms (then its lines are at hand and `writes` does not
/// matter), but may not overlap one in any other way.
void add_in_rank_order(std::span<const float* const> terms,
                       float* sum,
                       std::int64_t numel,
                       Writes writes = Writes::cached);

}  // namespace dstrain::comm
