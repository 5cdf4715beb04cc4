#include "cmd/dstrain/preflight.h"

#include <algorithm>

#include "runtime/config/train_options.h"

namespace dstrain::cmd {

bool asks_for_help(std::span<const std::string> command) {
  return command.front() == "train" &&
         std::find(command.begin(), command.end(), "--help") != command.end();
}

std::string command_help() {
  return config::help_text();
}

void check_command(std::span<const std::string> command, TrainPlace place) {
  if (command.front() != "train") return;
  const std::span<const std::string> arguments = command.subspan(1);
  config::check_train_paths(config::parse_train_options(arguments));
  set_up_training(arguments, place);
}

}  // namespace dstrain::cmd
