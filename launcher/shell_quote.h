#pragma once
#include <string>
#include <string_view>

namespace dstrain::launcher {

/// `text` as one word for any shell: between single quotes it is taken as it is; a quote itself
/// stands outside, after a backslash.
std::string shell_quote(std::string_view text);

}  // namespace dstrain::launcher
