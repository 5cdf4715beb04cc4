#pragma once
#include <optional>
#include <string>

#include "zero/gradient_reducer.h"
#include "zero/rank_shards.h"

namespace dstrain::zero {

/// Returns the last parameter, in the order of the layout, of which this rank has summed gradients
/// that are not finite. Backward came to it first. Returns nothing if there is none, or if the
/// gradients are on a disk and are not kept. `sum` is an ExactSum on the computing device, used as
/// scratch memory. Call between steps; waits for the device.
std::optional<std::string> last_not_finite(RankShards& shards,
                                           const GradientReducer& gradients,
                                           const TensorView& sum);

}  // namespace dstrain::zero
