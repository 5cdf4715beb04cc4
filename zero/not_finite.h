#pragma once
#include <optional>
#include <string>

#include "zero/gradient_reducer.h"
#include "zero/rank_shards.h"

namespace dstrain::zero {

/// The last parameter, in the order of the layout, of whose summed gradients some of this rank's
/// are not finite, which is the first that backward came to; nothing also where they lie on a disk
/// and are not kept. `sum`: an ExactSum where units compute, for use meanwhile. Between steps;
/// waits for the device.
std::optional<std::string> last_not_finite(RankShards& shards,
                                           const GradientReducer& gradients,
                                           const TensorView& sum);

}  // namespace dstrain::zero
