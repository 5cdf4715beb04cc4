#include "runtime/tokenizer/unicode.h"

#include <unicode/uchar.h>

#include "runtime/base/utf8.h"

namespace dstrain::tokenizer {
namespace {

UChar32 point(char32_t code) {
  return static_cast<UChar32>(code);
}

bool in_categories(char32_t code, unsigned mask) {
  return (1U << static_cast<unsigned>(u_charType(point(code))) & mask) != 0;
}

constexpr unsigned mark_mask =
    1U << U_NON_SPACING_MARK | 1U << U_ENCLOSING_MARK | 1U << U_COMBINING_SPACING_MARK;
constexpr unsigned number_mask =
    1U << U_DECIMAL_DIGIT_NUMBER | 1U << U_LETTER_NUMBER | 1U << U_OTHER_NUMBER;
constexpr unsigned punctuation_mask = 1U << U_DASH_PUNCTUATION | 1U << U_START_PUNCTUATION |
                                      1U << U_END_PUNCTUATION | 1U << U_CONNECTOR_PUNCTUATION |
                                      1U << U_OTHER_PUNCTUATION | 1U << U_INITIAL_PUNCTUATION |
                                      1U << U_FINAL_PUNCTUATION;
constexpr unsigned word_mask =
    mark_mask | 1U << U_DECIMAL_DIGIT_NUMBER | 1U << U_CONNECTOR_PUNCTUATION;

}  // namespace

bool is_whitespace(char32_t code) {
  return u_isUWhiteSpace(point(code)) != 0;
}

bool is_numeric(char32_t code) {
  return in_categories(code, number_mask);
}

bool is_mark(char32_t code) {
  return in_categories(code, mark_mask);
}

bool is_punctuation(char32_t code) {
  if (code < 0x80)
    return u_ispunct(point(code)) != 0 || u_charType(point(code)) == U_MATH_SYMBOL ||
           u_charType(point(code)) == U_CURRENCY_SYMBOL ||
           u_charType(point(code)) == U_MODIFIER_SYMBOL;
  return in_categories(code, punctuation_mask);
}

bool is_word(char32_t code) {
  return u_isUAlphabetic(point(code)) != 0 || in_categories(code, word_mask) ||
         u_hasBinaryProperty(point(code), UCHAR_JOIN_CONTROL) != 0;
}

void append_lowercase(std::string& text, char32_t code) {
  constexpr char32_t capital_i_with_dot = 0x130;  // the only one with two in lower case
  if (code == capital_i_with_dot) {
    text += "i\xCC\x87";
  } else {
    append_utf8(text, static_cast<char32_t>(u_tolower(point(code))));
  }
}

}  // namespace dstrain::tokenizer
