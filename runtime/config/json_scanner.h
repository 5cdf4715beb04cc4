#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/config/json_value.h"

namespace dstrain::config {

/// Walks over a JSON text: characters with their positions, blanks, strings, numbers, words.
/// Every method throws through stop() at a text that is no JSON. A comment that hides keys behind
/// something on its line gets a warning.
class JsonScanner {
 public:
  /// Keeps views of both.
  JsonScanner(std::string_view text, Problems& problems);
  [[nodiscard]] Position position() const { return position_; }
  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  /// The next character, or '\0' at the end.
  [[nodiscard]] char peek(std::size_t ahead = 0) const;
  /// Whether the next character is `wanted`, which is then passed.
  bool pass(char wanted);
  /// Passes white space and comments; whether a line ended among them.
  bool skip_blanks();
  /// A key without quotes, as HJSON has it: letters, digits, _ and -.
  std::string bare_key();
  /// What stands inside the double quotes, escapes resolved; the text must be UTF-8.
  std::string string();
  JsonValue number();
  /// true, false or null; other words get advice.
  JsonValue word();
  /// What a shell or a template was to replace stands here: "$STAGE", "<N>".
  [[noreturn]] void refuse_placeholder() const;
  /// "expected X, got Y" at the current place.
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
  int last_content_line_ = 0;  ///< where something other than blanks and comments was passed
};

}  // namespace dstrain::config
