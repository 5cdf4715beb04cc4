#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

/// Makes text from files, hosts and programs safe for our messages: it may move a terminal's cursor
/// or forge a line, and it may be long.
namespace dstrain {

/// How many bytes of a foreign text a message shows.
inline constexpr std::size_t shown_bytes_max = 200;

/// Returns `text` in one line: control characters, line ends, marks that change the direction of
/// text, and invalid UTF-8 become \n, \x1b or \u202e. A longer text is cut and followed by "...
/// (1048576 bytes)".
std::string printable(std::string_view text, std::size_t bytes_max = shown_bytes_max);

/// Returns one problem per line, each of at most about 4 KiB, with its command (command_below()) on
/// the next line.
std::string printable_list(std::span<const std::string> problems);

/// Returns a whole message, with its line ends, for foreign text that was not made printable. Keeps
/// about 8 KiB of a line and 256 KiB of a message. Does not change its own result.
std::string printable_message(std::string_view message);

}  // namespace dstrain
