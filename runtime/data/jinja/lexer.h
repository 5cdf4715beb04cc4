#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace dstrain::jinja {

/// Counted from 1; columns are bytes.
struct Position {
  int line = 1;
  int column = 1;
};

struct Token {
  enum class Kind {
    text,  ///< outside tags
    variable_begin,
    variable_end,
    block_begin,
    block_end,
    name,
    string,
    whole,
    real,
    symbol,  ///< an operator or bracket
    end,     ///< of the template
  };
  Kind kind = Kind::end;
  std::string text{};  ///< of a string: its value, with escapes replaced
  Position at{};
};

/// Thrown for a template that cannot be parsed.
struct SyntaxError {
  std::string message;
  Position at;
};

/// Splits a template into tokens, with the white space that Jinja's options trim_blocks and
/// lstrip_blocks and the signs in tags remove. Comments leave no token. Throws SyntaxError.
std::vector<Token> tokenize(std::string_view source);

}  // namespace dstrain::jinja
