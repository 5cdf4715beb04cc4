#pragma once
#include <optional>
#include <string>

#include "zero/gradient_reducer.h"
#include "zero/rank_shards.h"

namespace dstrain::zero {

/// The first parameter, in the order of the layout, of whose summed gradients some of this rank's
/// are not finite; nothing also where they lie on a disk and are not kept. `sum`: an ExactSum where
/// the device computes, for use meanwhile. Between steps; waits for `stream`.
std::optional<std::string> first_not_finite(RankShards& shards,
                                            const GradientReducer& gradients,
                                            const TensorView& sum,
                                            StreamView stream);

}  // namespace dstrain::zero
