#pragma once
#include <cstddef>
#include <string_view>

namespace dstrain::tokenizer {

/// Returns the last place where a text may be cut without changing the words that GPT-2's regular
/// expression finds, whatever follows; 0: none. The place is before ASCII white space that follows
/// another character: only a word of white space can continue there, and the expression does not
/// look back. The text may be invalid UTF-8 and end anywhere.
std::size_t last_word_cut(std::string_view text);

}  // namespace dstrain::tokenizer
