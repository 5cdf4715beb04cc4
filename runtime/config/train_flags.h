#pragma once
#include <limits>
#include <span>
#include <string_view>
#include <variant>

#include "runtime/config/train_options.h"

namespace dstrain::config {

using FlagTarget = std::variant<Flag<std::string> TrainOptions::*,
                                Flag<std::int64_t> TrainOptions::*,
                                Flag<double> TrainOptions::*,
                                Flag<bool> TrainOptions::*>;

/// One option of `train`.
struct FlagRow {
  std::string_view group;
  std::string_view name;  ///< without dashes, words joined by underscores
  FlagTarget target;
  std::string_view value;  ///< what stands for the value in the help; empty for booleans
  std::string_view help;
  std::string_view aliases = {};  ///< "batch_size|micro_batch_size"
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  std::string_view only = {};  ///< "none|false": the values that are built; empty: all
  bool value_optional = false;
};

/// All options of `train`, in the order of the help.
std::span<const FlagRow> train_flags();

}  // namespace dstrain::config
