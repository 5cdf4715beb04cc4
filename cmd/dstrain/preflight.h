#pragma once
#include <span>
#include <string>

#include "cmd/train_setup.h"

namespace dstrain::cmd {

/// Whether this is `train` with --help among its arguments; command_help() is the answer.
bool asks_for_help(std::span<const std::string> command);
std::string command_help();

/// Finds every mistake of a daemon command that can be known before a rank starts. `command`: its
/// name and arguments; other commands pass. Throws Error.
void check_command(std::span<const std::string> command, TrainPlace place);

}  // namespace dstrain::cmd
