#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/config/json_value.h"

namespace dstrain::config {

/// Scans a JSON text: characters with their positions, blanks, strings, numbers, words. Every
/// method throws through stop() if the text is not JSON. Warns of a comment that hides keys behind
/// other content of its line.
class JsonScanner {
 public:
  /// Keeps views of both.
  JsonScanner(std::string_view text, Problems& problems);
  [[nodiscard]] Position position() const { return position_; }
  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  /// Returns the next character, or '\0' at the end.
  [[nodiscard]] char peek(std::size_t ahead = 0) const;
  /// If the next character is `wanted`, passes it and returns true.
  bool pass(char wanted);
  /// Passes white space and comments. Returns whether a line ended in them.
  bool skip_blanks();
  /// Reads an HJSON key without quotes: letters, digits, _ and -.
  std::string bare_key();
  /// Returns the content of a quoted string, with escapes resolved. The text must be UTF-8.
  std::string string();
  JsonValue number();
  /// Reads true, false or null. Other words get an error with advice.
  JsonValue word();
  /// Refuses text that a shell or template should have replaced: "$STAGE", "<N>".
  [[noreturn]] void refuse_placeholder() const;
  /// Throws "expected X, got Y" for the current position.
  [[noreturn]] void unexpected(std::string_view expected) const;
  [[noreturn]] void stop(Position where, std::string_view message) const;

 private:
  char next();
  void skip_line_comment();
  void skip_block();
  void escape(std::string& into);
  unsigned code_unit();
  void copy_character(std::string& into);

  std::string_view text_;
  Problems& problems_;
  std::size_t at_ = 0;
  Position position_;
  std::optional<Position> hiding_comment_;  ///< the first one that hides keys
  int last_content_line_ = 0;  ///< the last line with something other than blanks and comments
};

}  // namespace dstrain::config
