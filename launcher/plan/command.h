#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/plan/options.h"

namespace dstrain::launcher {

/// What each rank runs.
struct Command {
  std::string program;                             ///< path to execute
  std::vector<std::string> argv;                   ///< arguments, byte for byte; argv[0] included
  std::optional<std::size_t> local_rank_position;  ///< where --local_rank=N is inserted
  bool daemon = false;  ///< dstraind: each node runs the one that its own dstrain finds
};

/// The arguments of the rank with this local rank.
std::vector<std::string> arguments_of(const Command& command, int local_rank);

/// PROGRAM and its arguments as a command. A name ending in .py runs under python3 -u, --module
/// adds -m. Throws Error{remote} when the program is missing or cannot be executed, and
/// Error{usage} for a word that looks like one of `known_commands` misspelt.
Command resolve_program(const LaunchOptions& options,
                        std::span<const std::string> words,
                        std::span<const std::string_view> known_commands);

/// `dstraind WORDS...`, with the daemon of this machine. Throws Error{remote}.
Command resolve_daemon(std::span<const std::string> words);

/// The daemon beside this program, else on PATH. Throws Error{remote}.
std::string find_daemon();

}  // namespace dstrain::launcher
