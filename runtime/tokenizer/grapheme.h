#pragma once
#include <cstddef>
#include <string_view>

namespace dstrain::tokenizer {

/// The number of bytes of the first extended grapheme cluster (Unicode, UAX #29) of valid UTF-8
/// that is not empty. Rule GB9c, of conjuncts of Indic scripts, is left out: clusters that only it
/// joins have 6 bytes or more, which SentencePiece's normalizer takes apart into characters anyway.
std::size_t grapheme_size(std::string_view text);

/// Whether a cluster ends between two characters whatever stands around them. May say no.
bool always_parts_graphemes(char32_t left, char32_t right);

}  // namespace dstrain::tokenizer
