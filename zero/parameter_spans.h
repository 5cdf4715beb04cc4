#pragma once
#include <string>
#include <vector>

#include "runtime/optim/optimizer.h"
#include "zero/rank_shards.h"

namespace dstrain::zero {

/// The names of a layout's parameters in ascending order, each once, however many tiles it has. The
/// number of a parameter is its position here, so it does not depend on how the model is cut.
std::vector<std::string> parameter_names(const FlatLayout& layout);

/// The spans of parameters in a sub-group, in order, without their sums. `names`:
/// parameter_names().
std::vector<optim::ParameterSpan> parameter_spans(const RankShards& shards,
                                                  const SubGroup& sub_group,
                                                  const std::vector<std::string>& names);

}  // namespace dstrain::zero
