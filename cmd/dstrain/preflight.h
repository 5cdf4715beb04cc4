#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cmd/train_setup.h"
#include "runtime/rank/output_lock.h"

namespace dstrain::cmd {

/// Prints a daemon command's help if --help or -h is among its arguments; returns whether it did.
bool print_help(std::span<const std::string> command);

/// Checks `train` for every mistake that shows before a rank starts, makes the output directory and
/// locks it for this job; returns null if the job does not start. Throws Error.
std::unique_ptr<OutputLock> check_training(const config::TrainOptions& options,
                                           const TrainPlace& place,
                                           const std::string& job);

/// Reads a daemon command's input from stdin, which its rank does not share with the launcher;
/// empty: none. `command`: its name and arguments. Throws Error{usage, io}.
std::string read_input(std::span<const std::string> command);

/// Checks another daemon command with this input. Throws Error.
void check_command(std::span<const std::string> command,
                   const std::string& input,
                   const TrainPlace& place);

/// Throws Error{usage} if a launch option stands among the arguments of a daemon command. Call it
/// only for a refused command: in a valid one, such a word is a value.
void refuse_launch_options(std::span<const std::string> command);

}  // namespace dstrain::cmd
