#pragma once
#include <compare>
#include <string>
#include <string_view>
#include <vector>

namespace dstrain::config {

/// A place in a text file; both count from 1, columns in characters.
struct Position {
  int line = 1;
  int column = 1;
  // clang-tidy takes the 0 that <=> compares with for a pointer.
  // NOLINTNEXTLINE(modernize-use-nullptr)
  friend auto operator<=>(const Position&, const Position&) = default;
};

/// Collects all problems of one file, so that the user sees them at once.
class Problems {
 public:
  /// `file`: empty if only options are checked, which have no line numbers.
  explicit Problems(std::string file) : file_(std::move(file)) {}
  /// Formats as "FILE:line:column: PATH: message", without PATH if it is empty. `command`: a shell
  /// command that mends it; stands on a line of its own.
  void add(Position where,
           std::string_view path,
           std::string_view message,
           std::string_view command = {});
  void warn(Position where, std::string_view path, std::string_view message);
  [[nodiscard]] bool empty() const { return problems_.empty(); }
  /// Whether there is a problem at exactly this position.
  [[nodiscard]] bool any_at(Position where) const;
  [[nodiscard]] const std::string& file() const { return file_; }
  /// One string each, in the order of the file.
  [[nodiscard]] std::vector<std::string> warnings() const;
  [[nodiscard]] std::vector<std::string> lines() const;
  /// Throws Error{config} with all lines.
  [[noreturn]] void raise() const;
  void throw_if_any() const {
    if (!empty()) raise();
  }

 private:
  struct Entry {
    Position where;
    std::string line;
  };
  [[nodiscard]] Entry entry(Position where, std::string_view path, std::string_view message) const;
  static std::vector<std::string> in_order(std::vector<Entry> entries);

  std::string file_;
  std::vector<Entry> problems_;
  std::vector<Entry> warnings_;
};

}  // namespace dstrain::config
