#pragma once
#include <span>
#include <string>
#include <vector>

#include "runtime/config/train_flags.h"

namespace dstrain::config {

/// Stores the words after an option as its row says: the last word, or all of them for files.
/// `typed_as` is its spelling on the command line. Adds errors to `problems` and options without
/// effect to options.warnings, one line each.
void read_flag(const FlagRow& row,
               const std::string& typed_as,
               std::span<const std::string> words,
               TrainOptions& options,
               std::vector<std::string>& problems);

/// Whether a word means true or false.
bool is_boolean(const std::string& word);

/// Whether an option treats two values alike: 1e-4 and 0.0001, NO and no.
bool same_value(const FlagRow& row, const std::string& first, const std::string& second);

}  // namespace dstrain::config
