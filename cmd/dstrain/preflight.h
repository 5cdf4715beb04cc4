#pragma once
#include <filesystem>
#include <span>
#include <string>

#include "cmd/train_setup.h"

namespace dstrain::cmd {

/// Prints a daemon command's help when --help is among its arguments; returns whether it was.
bool print_help(std::span<const std::string> command);

/// Finds every mistake of a daemon command that can be known before a rank starts. `command`: its
/// name and arguments. Throws Error.
void check_command(std::span<const std::string> command, TrainPlace place);

/// Where the command leaves checkpoints; empty for any but `train`.
std::filesystem::path output_directory(std::span<const std::string> command);

}  // namespace dstrain::cmd
