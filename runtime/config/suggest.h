#pragma once
#include <span>
#include <string>
#include <string_view>

namespace dstrain::config {

/// The word of `known` that `word` is most likely a misspelling of: at most two edits (insertion,
/// deletion, substitution, swap of neighbours) and about a third of the length away, case and the
/// kind of dash not counted. Empty when there is none.
std::string suggest(std::string_view word, std::span<const std::string_view> known);

}  // namespace dstrain::config
