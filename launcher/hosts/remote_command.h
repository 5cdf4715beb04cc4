#pragma once
#include <string>
#include <string_view>

namespace dstrain::launcher {

/// The one command line that a remote shell is given: it runs `path` as the agent, or else the
/// dstrain on PATH, or prints absent_line. The same for bash, dash, zsh and other shells that know
/// single quotes; nothing of the job is in it. Throws Error{remote} for a path that no quoting
/// brings through every shell.
std::string remote_command(std::string_view path);

/// What comes instead of an agent when there is no dstrain.
inline constexpr std::string_view absent_line = "dstrain-agent-absent";

}  // namespace dstrain::launcher
