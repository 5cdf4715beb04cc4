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
  stated,   ///< says what the model is: refused where that is not so
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
  bool whole_from_one = false;     ///< a number of steps, or below 1 a part of all
  bool never = false;              ///< -1 is 0
  std::string_view strategy = {};  ///< the option that says "epoch" in place of these steps
  FlagStatus status = FlagStatus::implemented;
  /// "auto|-1": of what is not implemented, the values that ask for nothing.
  std::string_view off = {};
  /// '{"split_batches": false}': of an object, the values that ask for nothing.
  std::string_view defaults = {};
  bool leave_out = false;  ///< a refusal ends with that: nothing can be typed in its place
  /// In place of `help` for a value, and for the options that were read before: those that do
  /// something, and those that stand above.
  std::string (*told)(const std::string& value, const TrainOptions& options) = nullptr;
  bool several = false;    ///< several words may follow, which are one value
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

/// The one of this name, "lr", with which words are joined by underscores; null: there is none.
const FlagRow* find_flag(std::string_view name);

/// What options of other programs say, in the options that we have for it; what contradicts is
/// added to `problems`, one line each, and what has no effect to options.warnings.
void translate_foreign(TrainOptions& options, std::vector<std::string>& problems);

}  // namespace dstrain::config
