#pragma once
#include <span>
#include <string>
#include <string_view>

#include "launcher/plan/options.h"
#include "launcher/protocol/protocol.h"

namespace dstrain::launcher {

/// PROGRAM and its arguments as a command. A name ending in .py runs under python3 -u, --module
/// adds -m. Throws Error{remote} when the program is missing or cannot be executed, and
/// Error{usage} for a word that looks like a misspelt one of `known_commands`, or that is neither a
/// path nor a script and follows neither a launch option nor --, and for another launcher, which
/// several of the `ranks` of a host would start again.
Command resolve_program(const CommandLine& line,
                        std::span<const std::string_view> known_commands,
                        std::size_t ranks);

/// `dstraind WORDS...`, with the daemon of this machine. Throws Error{remote}.
Command resolve_daemon(std::span<const std::string> words);

/// The daemon beside this program, else on PATH. Throws Error{remote}.
std::string find_daemon();

}  // namespace dstrain::launcher
