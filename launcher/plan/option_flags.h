#pragma once
#include "launcher/plan/options.h"
#include "launcher/plan/raw_options.h"

namespace CLI {
class App;
}

namespace dstrain::launcher {

/// Gives the app all launch options, with their help texts. Parsing fills `line` and `raw`, which
/// are borrowed, and throws Error{usage} at an option whose feature is not supported.
void add_option_flags(CLI::App& app, CommandLine& line, RawOptions& raw);

}  // namespace dstrain::launcher
