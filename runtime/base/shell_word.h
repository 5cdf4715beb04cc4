#pragma once
#include <string>
#include <string_view>

namespace dstrain {

/// Returns `text` as one word for any shell: in single quotes, except that a quote itself is
/// outside, after a backslash.
std::string shell_quote(std::string_view text);

/// Returns `text` as one word of a command in a message: unchanged if it is safe in any shell, else
/// in single quotes.
std::string shell_word(std::string_view text);

/// Returns a file's path in the same way. A path that begins with a dash, which programs would read
/// as an option, gets "./" before it.
std::string shell_path(const std::string& path);

/// What stands between a sentence and the command that it ends with, which is alone on its line so
/// that users can copy it.
inline constexpr std::string_view before_command = ":\n  ";

/// Returns ":\n  COMMAND", to end a message.
std::string command_below(std::string_view command);

}  // namespace dstrain
