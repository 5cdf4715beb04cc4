#pragma once
#include <span>
#include <string>

namespace dstrain::cmd {

/// The commands of a rank. `arguments` follow the command's name. They return the exit status and
/// throw Error.
int train_command(std::span<const std::string> arguments);
int evaluate_command(std::span<const std::string> arguments);
int generate_command(std::span<const std::string> arguments);
int chat_command(std::span<const std::string> arguments);
int bench_command(std::span<const std::string> arguments);

}  // namespace dstrain::cmd
