#pragma once
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/config/train_options.h"

namespace dstrain::config {

/// What dstrain does with an option.
enum class FlagStatus {
  implemented,
  hint,     ///< accepted without effect: one warning with the reason
  refused,  ///< an error with the reason
  stated,   ///< a statement about the model: refused if it is wrong
};

/// Where the value of an option is stored; nowhere if it has no effect.
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
  std::string_view value = {};    ///< stands for the value in the help; empty for booleans
  std::string_view help = {};     ///< what it does, or why it has no effect or is refused
  std::string_view aliases = {};  ///< "batch_size|micro_batch_size"
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  /// "no|steps|epoch": the allowed words, in any case; stored as spelled here.
  std::string_view choices = {};
  bool others_unbuilt = false;   ///< other words have a meaning in other programs
  std::string_view others = {};  ///< where some of these are implemented
  bool value_optional = false;
  bool whole_from_one = false;     ///< a whole number of steps, or below 1 a fraction of all
  bool never = false;              ///< -1 means 0
  std::string_view strategy = {};  ///< the option that says "epoch" instead of this number of steps
  FlagStatus status = FlagStatus::implemented;
  /// "auto|-1": values that ask for nothing, if the option is not implemented.
  std::string_view off = {};
  /// '{"split_batches": false}': values of an object that ask for nothing.
  std::string_view defaults = {};
  bool leave_out = false;  ///< ends a refusal with "leave it out": no other option replaces it
  /// Replaces `help` for a value. Sees the options read before: those with an effect, and those
  /// above this row.
  std::string (*told)(const std::string& value, const TrainOptions& options) = nullptr;
  bool several = false;    ///< several words may follow and form one value
  bool negatable = false;  ///< --no_NAME means false
  bool rare = false;       ///< shown only by --help-all

  [[nodiscard]] bool boolean() const { return value.empty(); }
  /// Whether it takes several words: files, possibly with weights.
  [[nodiscard]] bool takes_files() const {
    return std::holds_alternative<Flag<std::vector<DataFile>> TrainOptions::*>(target);
  }
};

/// Returns the options with an effect, in the order of the help.
std::span<const FlagRow> implemented_flags();
/// Returns options of Hugging Face's and Megatron's commands that have no effect here or are
/// refused.
std::span<const FlagRow> foreign_flags();
/// Returns all options.
const std::vector<FlagRow>& train_flags();

/// Returns the option with this name or alias ("lr"; words joined by underscores); null: none.
const FlagRow* find_flag(std::string_view name);

/// Returns the name of the option that an unknown name most likely means; empty: none.
std::string likely_option(const std::string& word);

/// Translates options of other programs into ours. Adds contradictions to `problems` and options
/// without effect to options.warnings, one line each.
void translate_foreign(TrainOptions& options, std::vector<std::string>& problems);

}  // namespace dstrain::config
