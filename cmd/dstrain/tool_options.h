#pragma once
#include <span>
#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace dstrain::cmd {

/// Reads the options of the tool that `app` is named after, "dstrain plan". Returns false if they
/// ask for help, after printing it. Throws Error{usage}.
bool parse_tool_options(CLI::App& app, std::span<const std::string> arguments);

}  // namespace dstrain::cmd
