#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cmd/train_setup.h"

namespace dstrain::cmd {

/// What `evaluate` needs, checked: every mistake in options, model directory and data is found
/// while making it.
struct EvaluateSetup {
  TrainSetup run;           ///< one that does not train
  std::string output_file;  ///< empty: stdout
};

/// `arguments`: what follows `evaluate`. Throws Error{usage, config, input}, the second also when
/// the plan does not fit into the budget.
EvaluateSetup set_up_evaluation(std::span<const std::string> arguments, const TrainPlace& place);

/// Throws Error{usage} if the output file cannot be written.
void check_output_file(const EvaluateSetup& setup);

/// The bytes of text of each of the model's tokens; empty: no tokenizer tells. Throws Error{input}.
std::vector<std::int32_t> text_bytes(const TrainSetup& setup);

/// What `evaluate --help` prints.
std::string evaluate_help();

}  // namespace dstrain::cmd
