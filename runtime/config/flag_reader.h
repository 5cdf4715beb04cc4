#pragma once
#include <span>
#include <string>
#include <vector>

#include "runtime/config/train_flags.h"

namespace dstrain::config {

/// Stores the words after an option as its row says: the last one, or all where a row takes files.
/// `typed_as` is its spelling on the command line. What is wrong with it is added to `problems`,
/// one line each; what it does not do, to options.warnings.
void read_flag(const FlagRow& row,
               const std::string& typed_as,
               std::span<const std::string> words,
               TrainOptions& options,
               std::vector<std::string>& problems);

}  // namespace dstrain::config
