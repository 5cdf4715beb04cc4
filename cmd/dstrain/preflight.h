#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cmd/train_setup.h"
#include "runtime/rank/output_lock.h"

namespace dstrain::cmd {

/// Prints a daemon command's help when --help or -h is among its arguments; returns whether it was.
bool print_help(std::span<const std::string> command);

/// The options of `train`, whose name and arguments `command` is; none for another command. Throws
/// Error{usage}.
std::optional<config::TrainOptions> read_train_options(std::span<const std::string> command);

/// Finds every mistake of `train` that can be known before a rank starts, makes the output
/// directory and locks it for this job; null of one that does not start. Throws Error.
std::unique_ptr<OutputLock> check_training(const config::TrainOptions& options,
                                           const TrainPlace& place,
                                           const std::string& job);

/// What a daemon command reads from stdin, which its rank does not share with the launcher; empty:
/// nothing. `command`: its name and arguments. Throws Error{usage, io}.
std::string read_input(std::span<const std::string> command);

/// Finds those of another daemon command with this input. Throws Error.
void check_command(std::span<const std::string> command,
                   const std::string& input,
                   const TrainPlace& place);

/// Throws Error{usage} when a launch option stands among the arguments of a daemon command that it
/// does not know. For a command that was refused: in one that was not, such a word is a value.
void refuse_launch_options(std::span<const std::string> command);

}  // namespace dstrain::cmd
