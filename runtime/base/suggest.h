#pragma once
#include <span>
#include <string>
#include <string_view>

namespace dstrain {

/// The word of `known` that `word` most likely stands for: one that is at most two edits away
/// (insertion, deletion, substitution, swap of neighbours), or a seventh of its length if that is
/// more, and no more than a third of it; else one that `word` begins or ends with, or that begins
/// or ends with `word`, in whole parts ("train_file_path": "train_file"). Case and the kind of dash
/// do not count. Never one that says the opposite ("no_x" for "x"), nor one for training where
/// `word` speaks of held-out data, or the other way about. Empty when there is none.
std::string suggest(std::string_view word, std::span<const std::string_view> known);

/// Likewise, of those alone that are a few edits away.
std::string suggest_spelling(std::string_view word, std::span<const std::string_view> known);

/// A word that begins with a dash which a text program has made of "--" or "-", with plain dashes:
/// "\u2014lr" is "--lr". Empty for other words.
std::string with_plain_dashes(std::string_view word);

/// Whether a word says that it names a file of held-out data: "val_file", "eval_data".
bool names_held_out_file(std::string_view word);

}  // namespace dstrain
