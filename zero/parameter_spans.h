#pragma once
#include <string>
#include <vector>

#include "runtime/optim/optimizer.h"
#include "zero/rank_shards.h"

namespace dstrain::zero {

/// The names of a layout's parameters, each once, however many tiles it has. A parameter's number
/// is its place here: it does not depend on how the model is cut.
std::vector<std::string> parameter_names(const FlatLayout& layout);

/// What a sub-group holds of parameters, in order, without sums. `names`: parameter_names().
std::vector<optim::ParameterSpan> parameter_spans(const RankShards& shards,
                                                  const SubGroup& sub_group,
                                                  const std::vector<std::string>& names);

}  // namespace dstrain::zero
