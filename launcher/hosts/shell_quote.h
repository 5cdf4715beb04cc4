#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace dstrain::launcher {

/// `text` as one word for any shell: between single quotes it is taken as it is; a quote itself
/// stands outside, after a backslash.
std::string shell_quote(std::string_view text);

/// The command line that has any login shell become a POSIX one, which runs `script` with `words`
/// as $0, $1 and so on. A script is one line: not every login shell takes a line end between
/// quotes.
std::string shell_command(std::string_view script, const std::vector<std::string>& words);

}  // namespace dstrain::launcher
