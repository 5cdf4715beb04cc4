#pragma once
#include <string>

namespace dstrain::tokenizer {

/// Properties of code points, as ICU's version of Unicode has them (docs/tokenizers.md).

bool is_whitespace(char32_t code);   ///< White_Space
bool is_numeric(char32_t code);      ///< general category N
bool is_mark(char32_t code);         ///< general category M
bool is_punctuation(char32_t code);  ///< general category P, or one of ASCII's 32
/// What `\w` means in UTS #18: Alphabetic, M, Nd, Pc, Join_Control.
bool is_word(char32_t code);

/// Appends the lower case of one character, whatever stands around it.
void append_lowercase(std::string& text, char32_t code);

}  // namespace dstrain::tokenizer
