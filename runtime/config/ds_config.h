#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/json_value.h"
#include "runtime/config/train_options.h"

namespace dstrain::config {

/// A DeepSpeed configuration file that has been compared with the schema. Its values are those with
/// which nothing is wrong: of the right type and range, asking for nothing that is not built. What
/// is wrong with others is in problems(), for resolve_config() to tell with all that it finds
/// itself. Keys are looked up by their canonical paths, whatever spelling the file uses.
class DsConfig {
 public:
  /// An empty configuration, as if no file were given.
  DsConfig() = default;
  /// `file` is for messages. Throws Error{config} where the text is no JSON.
  static DsConfig parse(std::string text, const std::string& file);
  /// Throws Error{input} as well, when the file cannot be read.
  static DsConfig load(const std::filesystem::path& path);
  /// That of --deepspeed, a file or its JSON; empty: without one.
  static DsConfig of(const TrainOptions& options);

  [[nodiscard]] bool has(std::string_view path) const { return find(path) != nullptr; }
  /// Null when absent.
  [[nodiscard]] const JsonValue* find(std::string_view path) const;
  [[nodiscard]] bool is_auto(std::string_view path) const;
  /// The value when it is given and not "auto" or null.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view path) const;
  [[nodiscard]] std::optional<double> number(std::string_view path) const;
  [[nodiscard]] std::optional<bool> boolean(std::string_view path) const;
  [[nodiscard]] std::optional<std::string> text_of(std::string_view path) const;

  /// The paths of all values that are "auto".
  [[nodiscard]] std::vector<std::string> automatic_paths() const;

  /// One line each: "ds.json:3:7: zero_optimization.stge: unknown key; did you mean \"stage\"?".
  [[nodiscard]] const Problems& problems() const { return problems_; }
  /// Whether a value was meant to be here, or in a section around it, and is wrong: that it is
  /// absent means nothing.
  [[nodiscard]] bool is_faulty(std::string_view path) const;

  /// Where a key stands; the start of the file when it is absent.
  [[nodiscard]] Position position(std::string_view path) const;
  [[nodiscard]] const std::string& file() const { return file_; }  ///< empty: none given
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::vector<std::string> warnings() const { return problems_.warnings(); }

 private:
  std::string file_;
  std::string text_;
  std::map<std::string, JsonValue, std::less<>> values_;
  std::set<std::string, std::less<>> faulty_;
  Problems problems_{""};
};

}  // namespace dstrain::config
