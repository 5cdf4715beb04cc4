#pragma once
#include <string>

namespace dstrain::tokenizer {

/// Properties of code points in ICU's version of Unicode (docs/tokenizers.md).

bool is_whitespace(char32_t code);   ///< White_Space
bool is_numeric(char32_t code);      ///< general category N
bool is_mark(char32_t code);         ///< general category M
bool is_punctuation(char32_t code);  ///< general category P, or one of ASCII's 32
/// UTS #18's `\w`: Alphabetic, M, Nd, Pc, Join_Control.
bool is_word(char32_t code);

/// Appends the lower case of one character, without context.
void append_lowercase(std::string& text, char32_t code);

}  // namespace dstrain::tokenizer
