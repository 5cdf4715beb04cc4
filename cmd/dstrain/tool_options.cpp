#include "cmd/dstrain/tool_options.h"

#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "runtime/base/error.h"

namespace dstrain::cmd {

bool parse_tool_options(CLI::App& app, std::span<const std::string> arguments) {
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return false;
  } catch (const CLI::ParseError& error) {
    constexpr std::string_view program = "dstrain ";
    fail(ErrorCode::usage, "{}: {}; see {} --help", app.get_name().substr(program.size()),
         error.what(), app.get_name());
  }
  return true;
}

}  // namespace dstrain::cmd
