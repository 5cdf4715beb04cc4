#pragma once
#include <span>
#include <string>
#include <string_view>

namespace dstrain::config {

/// The known word nearest to `word`, for "did you mean": at most two edits away (insert, delete,
/// replace, swap of neighbours) and at most a third of the word's length. Empty when none is near;
/// the first of equally near ones.
std::string suggest(std::string_view word, std::span<const std::string_view> known);

}  // namespace dstrain::config
