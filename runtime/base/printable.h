#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

/// Text that others have written, as files, hosts and programs do, in messages of ours: it may hold
/// what moves a terminal's cursor or forges a line, and it may be long.
namespace dstrain {

/// How much of a foreign text a message shows.
inline constexpr std::size_t shown_bytes_max = 200;

/// `text` in one line: control characters, ends of lines, those that turn the direction of writing,
/// and what is no UTF-8 as \n, \x1b or \u202e. Of what is longer the beginning, and then
/// "... (1048576 bytes)".
std::string printable(std::string_view text, std::size_t bytes_max = shown_bytes_max);

/// One problem a line, of which at most some 4 KiB stay.
std::string printable_list(std::span<const std::string> problems);

/// A whole message, whose lines stay lines: for foreign text that nobody has made printable. Of a
/// line at most some 8 KiB stay, of a message 256 KiB. Does not change its own result.
std::string printable_message(std::string_view message);

}  // namespace dstrain
