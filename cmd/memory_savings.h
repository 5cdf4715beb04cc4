#pragma once
#include <string>
#include <vector>

#include "runtime/config/resolve.h"
#include "runtime/model/model.h"

namespace dstrain::cmd {

/// A change of a run by which it takes less device memory.
struct MemorySaving {
  std::string change;  ///< as the user would make it
  Bytes needs = 0;     ///< device memory of a rank then, by the plan of such a run
};

/// The changes that save most, each made alone, best first; at most three. `settings` are what
/// `options` came to on the ranks of `context`.
std::vector<MemorySaving> best_savings(const config::TrainOptions& options,
                                       const config::Context& context,
                                       const config::TrainSettings& settings,
                                       const model::Model& model);

/// "--gradient_checkpointing (1.20 GiB)", and so on, joined by commas; empty for none.
std::string describe(const std::vector<MemorySaving>& savings);

}  // namespace dstrain::cmd
