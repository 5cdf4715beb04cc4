#pragma once
#include <span>
#include <string>

#include "cmd/train_setup.h"

namespace dstrain::cmd {

/// Prints a daemon command's help when --help is among its arguments; returns whether it was.
bool print_help(std::span<const std::string> command);

/// Finds every mistake of a daemon command that can be known before a rank starts. `command`: its
/// name and arguments. Returns the output directory of a training, absolute. Throws Error.
std::string check_command(std::span<const std::string> command, TrainPlace place);

}  // namespace dstrain::cmd
