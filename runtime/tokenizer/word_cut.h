#pragma once
#include <cstddef>
#include <string_view>

namespace dstrain::tokenizer {

/// The last place at which a text may be cut in two without changing the words that GPT-2's
/// regular expression cuts it into, whatever follows; 0 where there is none. That is before white
/// space of ASCII which follows something else: no word but one of white space goes on there, and
/// none looks back. The text need not be valid UTF-8, and its end may be anywhere.
std::size_t last_word_cut(std::string_view text);

}  // namespace dstrain::tokenizer
