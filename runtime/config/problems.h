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
  // NOLINTNEXTLINE(modernize-use-nullptr): clang takes the 0 that <=> is compared with for one
  friend auto operator<=>(const Position&, const Position&) = default;
};

/// Gathers everything that is wrong with one file, so that the user sees all of it at once.
class Problems {
 public:
  /// `file`: empty when the options are looked at alone, which have no lines.
  explicit Problems(std::string file) : file_(std::move(file)) {}
  /// "FILE:line:column: PATH: message"; an empty path is left out.
  void add(Position where, std::string_view path, std::string_view message);
  void warn(Position where, std::string_view path, std::string_view message);
  [[nodiscard]] bool empty() const { return problems_.empty(); }
  /// Whether something is wrong at exactly this place.
  [[nodiscard]] bool any_at(Position where) const;
  [[nodiscard]] const std::string& file() const { return file_; }
  /// One line each, in the order of the file.
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
