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

/// Whether a word says true or false.
bool is_boolean(const std::string& word);

/// Whether two values say the same to an option: 1e-4 and 0.0001, NO and no.
bool same_value(const FlagRow& row, const std::string& first, const std::string& second);

}  // namespace dstrain::config
