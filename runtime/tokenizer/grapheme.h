#pragma once
#include <cstddef>
#include <string_view>

namespace dstrain::tokenizer {

/// Returns the size in bytes of the first extended grapheme cluster (Unicode, UAX #29) of `text`,
/// which is valid UTF-8 and not empty. Omits rule GB9c (conjuncts of Indic scripts): clusters that
/// only this rule joins have 6 bytes or more, and SentencePiece's normalizer splits those into
/// characters anyway.
std::size_t grapheme_size(std::string_view text);

/// Whether a cluster ends between two characters in every context. May return false although it
/// does.
bool always_parts_graphemes(char32_t left, char32_t right);

}  // namespace dstrain::tokenizer
