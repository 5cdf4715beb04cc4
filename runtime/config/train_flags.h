#pragma once
#include <limits>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/config/train_options.h"

namespace dstrain::config {

/// What dstrain does with an option.
enum class FlagStatus {
  implemented,
  hint,     ///< accepted without effect: one warning, which says why
  refused,  ///< an error, which says why
};

/// Where the value of an option goes; nowhere for those without effect.
using FlagTarget = std::variant<std::monostate,
                                Flag<std::string> TrainOptions::*,
                                Flag<std::int64_t> TrainOptions::*,
                                Flag<double> TrainOptions::*,
                                Flag<std::vector<DataFile>> TrainOptions::*,
                                Flag<bool> TrainOptions::*>;

/// One option of `train`.
struct FlagRow {
  std::string_view group = {};
  std::string_view name = {};  ///< without dashes, words joined by underscores
  FlagTarget target = {};
  std::string_view value = {};    ///< what stands for the value in the help; empty for booleans
  std::string_view help = {};     ///< what it does; else, why it does nothing or is refused
  std::string_view aliases = {};  ///< "batch_size|micro_batch_size"
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  /// "no|steps|epoch": the words it takes, in any case; they are stored as they stand here.
  std::string_view choices = {};
  bool others_unbuilt = false;   ///< other words have a meaning elsewhere
  std::string_view others = {};  ///< where some of them are built
  bool value_optional = false;
  bool whole_from_one = false;  ///< a number of steps, or below 1 a part of all
  FlagStatus status = FlagStatus::implemented;
  /// "auto|-1": of what is not implemented, the values that ask for nothing.
  std::string_view off = {};
  bool negatable = false;  ///< --no_NAME says false
  bool rare = false;       ///< shown by --help-all alone

  [[nodiscard]] bool boolean() const { return value.empty(); }
  /// Whether it takes several words: files, with or without weights.
  [[nodiscard]] bool takes_files() const {
    return std::holds_alternative<Flag<std::vector<DataFile>> TrainOptions::*>(target);
  }
};

/// Those that do something, in the order of the help.
std::span<const FlagRow> implemented_flags();
/// Those of Hugging Face's and Megatron's commands that do nothing here, or are refused.
std::span<const FlagRow> foreign_flags();
/// All of them.
const std::vector<FlagRow>& train_flags();

}  // namespace dstrain::config
