#include "cmd/dstrain/preflight.h"

#include <algorithm>
#include <vector>

#include "runtime/config/train_options.h"

namespace dstrain::cmd {

bool asks_for_help(std::span<const std::string> command) {
  return command.front() == "train" &&
         std::find(command.begin(), command.end(), "--help") != command.end();
}

std::string command_help() {
  return config::help_text();
}

namespace {

/// Reads the start of the tokens, where an id that the model does not know shows itself; the rest
/// is checked when it is trained on.
void check_tokens(const data::TokenStream& tokens) {
  constexpr std::int64_t checked_max = 1 << 24;
  std::vector<std::int32_t> ids(1 << 16);
  const std::int64_t checked = std::min(tokens.size(), checked_max);
  for (std::int64_t at = 0; at < checked; at += static_cast<std::int64_t>(ids.size())) {
    ids.resize(std::min(ids.size(), static_cast<std::size_t>(checked - at)));
    tokens.read(at, ids);
  }
}

}  // namespace

void check_command(std::span<const std::string> command, TrainPlace place) {
  if (command.front() != "train") return;
  const std::span<const std::string> arguments = command.subspan(1);
  config::check_train_paths(config::parse_train_options(arguments));
  const TrainSetup setup = set_up_training(arguments, place);
  check_tokens(*setup.training_tokens);
  if (setup.validation_tokens) check_tokens(*setup.validation_tokens);
}

}  // namespace dstrain::cmd
