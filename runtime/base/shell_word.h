#pragma once
#include <string>
#include <string_view>

namespace dstrain {

/// `text` as one word for any shell: between single quotes it is taken as it is; a quote itself
/// stands outside, after a backslash.
std::string shell_quote(std::string_view text);

/// `text` as one word of a command that a message shows: as it is where any shell takes it so,
/// else between single quotes.
std::string shell_word(std::string_view text);

/// The path of a file likewise; one that begins with a dash, which programs take for an option,
/// begins with "./".
std::string shell_path(const std::string& path);

}  // namespace dstrain
