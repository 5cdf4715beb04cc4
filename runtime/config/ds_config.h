#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/json_value.h"

namespace dstrain::config {

/// A DeepSpeed configuration file that has passed every check that needs nothing else: all keys
/// are known, of the right type and range, and ask for nothing that is not built. Keys are looked
/// up by their canonical paths, whatever spelling the file uses.
class DsConfig {
 public:
  /// An empty configuration, as if no file were given.
  DsConfig() = default;
  /// `file` is for messages. Throws Error{config} with all problems, one line each:
  /// "ds.json:3:7: zero_optimization.stge: unknown key; did you mean \"stage\"?".
  static DsConfig parse(std::string text, const std::string& file);
  /// Throws Error{input} as well, when the file cannot be read.
  static DsConfig load(const std::filesystem::path& path);

  [[nodiscard]] bool has(std::string_view path) const { return find(path) != nullptr; }
  /// Null when absent.
  [[nodiscard]] const JsonValue* find(std::string_view path) const;
  [[nodiscard]] bool is_auto(std::string_view path) const;
  /// The value when it is given and not "auto" or null.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view path) const;
  [[nodiscard]] std::optional<double> number(std::string_view path) const;
  [[nodiscard]] std::optional<bool> boolean(std::string_view path) const;
  [[nodiscard]] std::optional<std::string> text_of(std::string_view path) const;

  /// Where a key stands; the start of the file when it is absent.
  [[nodiscard]] Position position(std::string_view path) const;
  [[nodiscard]] const std::string& file() const { return file_; }  ///< empty: none given
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  std::string file_;
  std::string text_;
  std::map<std::string, JsonValue, std::less<>> values_;
  std::vector<std::string> warnings_;
};

}  // namespace dstrain::config
