#include "cmd/dstrain/commands.h"

#include <algorithm>
#include <array>

namespace dstrain::cmd {
namespace {

using Kind = CommandInfo::Kind;

constexpr std::array<CommandInfo, 4> commands{{
    {"train", Kind::daemon, "train a model; options: dstrain train --help", nullptr},
    {"generate", Kind::daemon, "write text with a trained model", nullptr},
    {"config", Kind::tool, "check or show a configuration file", config_command},
    {"agent", Kind::tool, "", agent_command},
}};

}  // namespace

std::span<const CommandInfo> all_commands() {
  return commands;
}

const CommandInfo* find_command(std::string_view name) {
  const auto* const found =
      std::find_if(commands.begin(), commands.end(),
                   [name](const CommandInfo& command) { return command.name == name; });
  return found == commands.end() ? nullptr : found;
}

}  // namespace dstrain::cmd
