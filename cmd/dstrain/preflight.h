#pragma once
#include <filesystem>
#include <span>
#include <string>

#include "cmd/train_setup.h"

namespace dstrain::cmd {

/// Prints a daemon command's help when --help or -h is among its arguments; returns whether it was.
bool print_help(std::span<const std::string> command);

/// Finds every mistake of a daemon command that can be known before a rank starts. `command`: its
/// name and arguments. Throws Error.
void check_command(std::span<const std::string> command, TrainPlace place);

/// Throws Error{usage} when a launch option stands among the arguments of a daemon command that it
/// does not know. For a command that was refused: in one that was not, such a word is a value.
void refuse_launch_options(std::span<const std::string> command);

/// Where the command leaves checkpoints; empty for any but `train`.
std::filesystem::path output_directory(std::span<const std::string> command);

}  // namespace dstrain::cmd
