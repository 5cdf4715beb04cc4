#pragma once
#include <string>
#include <vector>

#include "runtime/config/train_flags.h"

namespace dstrain::config {

/// Stores the text of an option as its row says; `typed_as` is its spelling on the command line.
/// What is wrong with it is added to `problems`, one line each; what it does not do, to
/// options.warnings.
void read_flag(const FlagRow& row,
               const std::string& typed_as,
               const std::string& text,
               TrainOptions& options,
               std::vector<std::string>& problems);

}  // namespace dstrain::config
