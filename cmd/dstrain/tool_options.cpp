#include "cmd/dstrain/tool_options.h"

#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "launcher/plan/option_words.h"

namespace dstrain::cmd {

bool parse_tool_options(CLI::App& app, std::span<const std::string> arguments) {
  constexpr std::string_view program = "dstrain ";
  launcher::show_plain_types(app);
  try {
    launcher::parse_option_words(app, arguments, app.get_name().substr(program.size()));
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return false;
  }
  return true;
}

}  // namespace dstrain::cmd
